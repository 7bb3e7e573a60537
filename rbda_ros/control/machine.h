/* The stream as a state machine: messages and times in, messages and rejections out.
 *
 * It knows no ROS, no clock and no thread. All inputs come through `machine_feed` in the order of
 * their arrival. Its configuration (model, settings, kernels) is replaced as a whole between two
 * messages; its state stays. Where something is missing that only Python can prepare, the message
 * is rejected and `request` says what is needed. */
#ifndef RBDA_ROS_MACHINE_H
#define RBDA_ROS_MACHINE_H

#include "configuration.h"

#include <pthread.h>
#include <time.h>

enum { MAX_LAYOUTS = 100, MAX_RECORDS = 8192, MAX_ASKED = 64 };
static const int64_t NEVER = -(INT64_C(1) << 62); /* a time before any other [ns] */
/* How far time goes back before it counts as a jump, and not as a clock being corrected [ns]. */
static const int64_t JUMP = 10000000;

/* Gates, one for each topic of efforts. */
enum { FEEDFORWARD_GATE, MOTOR_GATE, ARRAY_GATE, GATES };

/* The filtered rate of a number: differences through a first-order low-pass. */
typedef struct {
  double rate; /* NaN while it is not known */
  double filtered, value;
  int64_t time, began;
} rate_t;

/* Velocities that were sent to motors, beside the efforts of a gate. */
typedef struct {
  bool standing; /* whether the last ones were something other than zeros */
  int64_t time;  /* when they were sent, by the steady clock [ns] */
} velocities_t;

/* Where joints stand in messages that name the same joints. */
typedef struct {
  uint8_t *pattern; /* bytes from the frame to the end of the names */
  size_t pattern_size;
  uint8_t encoding; /* of the message: which byte order */
  int count, known;
  bool repeated;
  int32_t *joints; /* (count) their numbers; NOWHERE for those that are not ours */
  int32_t *own;    /* (known) numbers of ours, sorted */
  int64_t time;    /* stamp of the last message with the same joints of ours */
  uint32_t number; /* no other layout has it */
  uint32_t group;  /* that of all layouts with the same joints of ours */
} layout_t;

typedef struct {
  layout_t *layouts[MAX_LAYOUTS];
  int count;
  uint32_t made; /* how many there ever were */
} layouts_t;

/* Arrays of the state, with their sizes; state.c allocates and frees them. */
#define STATE_ARRAYS(DO)                                                                           \
  DO##_ARRAY(double, position, s->joints);                                                         \
  DO##_ARRAY(double, velocity, s->joints);                                                         \
  DO##_ARRAY(double, effort, s->joints);                                                           \
  DO##_ARRAY(int64_t, time, s->joints);                                                            \
  DO##_ARRAY(int64_t, effort_time, s->joints);                                                     \
  DO##_ARRAY(uint8_t, moving, s->joints);  /* whether the velocity is known */                     \
  DO##_ARRAY(uint32_t, source, s->joints); /* layout of the message that the position is from */   \
  DO##_ARRAY(rate_t, velocity_rates, s->joints);                                                   \
  DO##_ARRAY(rate_t, acceleration_rates, s->joints);                                               \
  DO##_ARRAY(rate_t, base_rates, s->base_nv);                                                      \
  DO##_ARRAY(double, q, s->nq); /* where the last state was closed */                              \
  /* the state that was answered last: velocity, position and feedforward; */                      \
  DO##_ARRAY(double, state, s->ny + s->nq + s->actuated);                                          \
  DO##_ARRAY(uint8_t, state_joints, s->joints); /* the joints that it follows from; */             \
  DO##_ARRAY(double, qd, s->nv);                /* its completed velocity */                       \
  DO##_ARRAY(double, reference, s->joints);                                                        \
  DO##_ARRAY(uint8_t, referenced, s->joints);                                                      \
  DO##_ARRAY(double, wrenches, 6 * s->links);                                                      \
  DO##_ARRAY(int64_t, wrench_time, s->links);                                                      \
  DO##_ARRAY(double, command_q, s->nq);                                                            \
  /* three of the observer */                                                                      \
  DO##_ARRAY(double, integral, s->ny);                                                             \
  DO##_ARRAY(double, drive, s->ny);                                                                \
  DO##_ARRAY(double, external, s->ny);

typedef struct {
  int joints, nq, nv, ny, actuated, links, base_nv; /* as those of the model */
  STATE_ARRAYS(DECLARE)
  int64_t settling_failed; /* when no start told the branch, by the steady clock */
  bool answered;           /* whether there is a state that was answered, */
  int64_t state_time;      /* its time, */
  bool completed;          /* and whether its completed velocity is known */
  int64_t reference_time;
  double base_position[7], base_twist[6];
  int64_t base_time;
  int64_t command_stamp, command_steady;  /* of the last that was answered */
  int64_t last_command_stamp;             /* of the last that was read */
  int64_t observer_time, observer_period; /* of the last state, and between two */
  bool observing;
  double largest_external;
  gate_t gates[GATES];
  int64_t hold_began[GATES]; /* since when efforts stand after the inputs stopped; NEVER */
  velocities_t velocities[GATES];
  layouts_t state_layouts, command_layouts;
  int64_t latest, latest_steady; /* times that were seen last */
  int64_t present;               /* the last by the clock of stamps, inputs or not */
  int64_t steady_shift;          /* added to the steady clock, which may have started over */
} state_t;

/* One answer, for statistics. */
typedef struct {
  double duration, age, health[HEALTH];
} record_t;

typedef struct {
  record_t *records;
  size_t count; /* since they were read; there may be more than records */
} records_t;

/* About the message that is being answered, for whoever explains its rejection. */
typedef struct {
  int joint; /* NOWHERE for none */
  double value, other;
  uint8_t *mask; /* (joints) that were known */
} detail_t;

/* The last rejection, as Python needs it for its message. */
typedef struct {
  code_t code;
  int topic;
  detail_t detail;
  uint8_t *data;
  size_t size, capacity;
} rejection_t;

/* A message that is still to be sent. */
typedef struct message {
  struct message *next;
  int topic;
  size_t size;
  uint8_t data[];
} message_t;

/* What Python should prepare. */
typedef struct {
  bool route, command, search; /* which of these is asked for */
  uint8_t *measured, *wanted;  /* (joints) of a route; */
  bool has_wanted;             /* whether it has the second one */
  uint8_t *named, *damped;     /* (joints) of a command; */
  int fields;
  bool has_damped;          /* likewise */
  uint8_t *chosen;          /* (joints) of a search; and */
  double *position, *guess; /* (joints), (nq) */
  int64_t search_time;      /* when the last one was asked for, by the steady clock */
} request_t;

typedef struct {
  pthread_mutex_t lock;
  config_t *config;
  state_t *state;
  int64_t counts[CODES];
  int64_t limited;
  detail_t detail;
  rejection_t rejection;
  request_t request;
  bool foreign;              /* whether the message that is being answered names no joint of ours */
  uint64_t asked[MAX_ASKED]; /* hashes of the routes asked for since the last configuration */
  int asked_count;
  records_t states, commands;
  double apart;         /* largest contradiction in the last evaluation, over its scale */
  double contradiction; /* largest since it was read; and whose */
  int contradicting;
  const route_t *route;     /* that answered last */
  message_t *pending;       /* zeros for motors that the configuration does not have any more */
  bool pending_ends[GATES]; /* the topics that these zeros end */
} machine_t;

/* Where messages go. */
typedef struct {
  void *context;
  void (*emit)(void *context, int topic, const uint8_t *data, size_t size);
  bool (*listened)(void *context, int topic); /* whether anybody listens */
} sink_t;

/* Time of an input: of the clock of stamps, and of one that never jumps [ns]. */
typedef struct {
  int64_t now, steady;
} moment_t;

bool machine_init(machine_t *machine);
void machine_free(machine_t *machine);
/* Go on with another configuration; the one before. The state moves along as far as it fits. */
config_t *machine_configure(machine_t *machine, config_t *config);
/* Take a message; whether Python is asked for something new. */
bool machine_feed(machine_t *machine, const sink_t *sink, int topic, const uint8_t *data,
                  size_t size, moment_t moment);
/* Publish what is due because nothing came. The next time that this is needed [ns, steady]. */
int64_t machine_tick(machine_t *machine, const sink_t *sink, moment_t moment);
/* End: publish what ends the topics of motors, and forget all inputs. */
void machine_stop(machine_t *machine, const sink_t *sink, moment_t moment);

/* The computer's clock that never jumps [ns]. */
static inline int64_t monotonic(void)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Names. */
/* Fill the slots, of which there are `mask` + 1: a power of two, and more than names. */
void fill_slots(name_table_t *table);
int find_name(const name_table_t *table, text_t name);
/* The order of int32_t, for qsort. */
int by_number(const void *one, const void *other);

/* Inside the machine; each works on the configuration and the state. */
void reject(machine_t *m, code_t code, int topic, const uint8_t *data, size_t size);
bool make_state(machine_t *m, config_t *config);
void free_state(state_t *state);
void forget_inputs(state_t *state);
/* Close loops from a position (nq) the next time. */
void start_at(state_t *state, const double *q);
void forget_differences(state_t *state);
bool same_joints(const model_t *one, const model_t *other);
/* Of masks that may be NULL. */
bool same_mask(const uint8_t *one, const uint8_t *other, size_t joints);
int64_t longest_gap(const settings_t *settings);
void update_rate(rate_t *of, double value, int64_t time, double cutoff, int64_t longest);
void begin_moment(machine_t *m, moment_t moment);
/* Read a JointState and find its layout; MISNAMED where no joint is ours, STALE where its stamp is
 * too old. */
code_t take_joint_state(machine_t *m, layouts_t *layouts, const uint8_t *data, size_t size,
                        moment_t moment, joint_state_t *state, layout_t **layout);
code_t feed_joint_states(machine_t *m, const sink_t *sink, const uint8_t *data, size_t size,
                         moment_t moment);
code_t feed_command(machine_t *m, const sink_t *sink, const uint8_t *data, size_t size,
                    moment_t moment);
code_t feed_reference(machine_t *m, const uint8_t *data, size_t size, moment_t moment);
code_t feed_base_state(machine_t *m, const uint8_t *data, size_t size, moment_t moment);
code_t feed_wrench(machine_t *m, const uint8_t *data, size_t size, moment_t moment);
/* Take measured efforts and publish the estimate, for the state that was just answered. */
code_t observe(machine_t *m, const sink_t *sink, const layout_t *layout, const joint_state_t *state,
               int64_t time);
/* A message of a layout was taken that has this stamp. */
void note_time(layouts_t *layouts, const layout_t *layout, int64_t time);
bool is_stale(int64_t time, int64_t now, int64_t timeout);
/* Count an answer that was begun then (`monotonic`), to a message with this stamp. */
void record_answer(records_t *records, const double *health, size_t limited, int64_t stamp,
                   moment_t moment, int64_t began);
/* Velocities (actuated) of motors are sent with the topic of a gate. */
void note_velocities(machine_t *m, int gate, const double *velocities, moment_t moment);
/* Efforts (actuated) that may be sent now, into `out`; how many were above their limit. */
size_t pass_gate(machine_t *m, int gate, const double *efforts, moment_t moment, double *out);
/* Publish a message whose fields have these numbers; those that it has not are not looked at. */
void emit_fields(const sink_t *sink, int topic, template_t *message, const double *const *fields,
                 int64_t stamp);
/* The bare array of efforts, through its gate, if it comes from this source. */
void send_effort_array(machine_t *m, const sink_t *sink, bool from_joints, const double *efforts,
                       moment_t moment);
void send_array(machine_t *m, const sink_t *sink, int topic, const double *values);

/* The machine as another extension module uses it: a capsule of `Machine.api`. Each function takes
 * the lock of the machine, and none needs the interpreter. */
#define MACHINE_API "rbda_ros.control.machine_api"

typedef struct {
  machine_t *machine;
  bool (*feed)(machine_t *machine, const sink_t *sink, int topic, const uint8_t *data, size_t size,
               moment_t moment);
  int64_t (*tick)(machine_t *machine, const sink_t *sink, moment_t moment);
  void (*stop)(machine_t *machine, const sink_t *sink, moment_t moment);
} machine_api_t;

#endif
