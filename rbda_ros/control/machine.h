/* The stream as a state machine: messages and times in, messages and rejections out.
 *
 * It knows no ROS, no clock and no thread. All inputs come through `machine_feed` in the order of
 * their arrival. Its configuration (model, settings, kernels) is replaced as a whole between two
 * messages; its state stays. Where something is missing that only Python can prepare, the message
 * is rejected and `request` says what is needed. */
#ifndef RBDA_ROS_MACHINE_H
#define RBDA_ROS_MACHINE_H

#include "cdr.h"
#include "../engine/closing.h"
#include "gate.h"

#include <pthread.h>

enum { NOWHERE = -1, MAX_NAMES = 10000, MAX_LAYOUTS = 100, MAX_RECORDS = 8192 };
static const int64_t NEVER = -(INT64_C(1) << 62); /* a time before any other [ns] */
/* How far time goes back before it counts as a jump, and not as a clock being corrected [ns]. */
static const int64_t JUMP = 10000000;

/* Topics; `control/topics.py` has the same order. */
enum { JOINT_STATES, REFERENCE, BASE_STATE, EXTERNAL_WRENCH, JOINT_COMMANDS, INPUT_TOPICS };
enum {
  FEEDFORWARD,
  EFFORT_COMMANDS,
  POSITION_COMMANDS,
  VELOCITY_COMMANDS,
  COMPLETED_STATES,
  MOTOR_COMMANDS,
  EXTERNAL_EFFORT,
  ESTIMATED_WRENCH,
  OUTPUT_TOPICS
};

/* Gates, one for each topic of efforts. */
enum { FEEDFORWARD_GATE, MOTOR_GATE, ARRAY_GATE, GATES };

/* Why an input gives no answer; `control/rejections.py` has the same order. */
typedef enum {
  ACCEPTED,
  UNREADABLE,
  MISNAMED,
  PARTIAL,
  WRONG_SIZE,
  NOT_FINITE,
  NOT_A_ROTATION,
  STALE,
  OUT_OF_ORDER,
  NO_VELOCITY,
  NO_ACCELERATION,
  NO_REFERENCE,
  NO_BASE_STATE,
  NO_STATE,
  NO_EFFORT,
  NO_WRENCH,
  NOT_READY,
  NOT_CLOSING,
  SINGULAR,
  CONTRADICTION,
  CANNOT_GIVE,
  CODES
} code_t;

/* Names, found by a hash. */
typedef struct {
  char **names;
  int count;
  int32_t *slots;
  uint32_t mask;
} name_table_t;

typedef struct {
  name_table_t joints;  /* as messages name them, with the prefix */
  int32_t *entries;     /* (joints) entry of q; NOWHERE for joints of several coordinates */
  int32_t *coordinates; /* (joints) first velocity coordinate */
  uint8_t *angular;     /* (joints) whether the position is an angle */
  int nq, nv, ny, base_nq, base_nv;
  double *home;              /* (nq) assembly */
  int actuated, independent; /* how many joints */
  int32_t *actuated_joints;  /* their numbers */
  int32_t *independent_joints;
  int32_t *y_coordinates; /* (ny) velocity coordinates of y */
  name_table_t links;
  int32_t *link_bodies; /* (links) NOWHERE where a wrench moves nothing */
  double *link_frames;  /* (links x 12) rotation by rows, and origin, in the body's frame */
  int bodies;
  int64_t description, version; /* what the model was made from; which model it is */
} model_t;

enum { ACCELERATION_ZERO, ACCELERATION_REFERENCE, ACCELERATION_ESTIMATE };
enum { STALE_NOTHING, STALE_ZERO, STALE_GRAVITY, STALE_DAMPING };

typedef struct {
  int64_t timeout; /* [ns]; 0 for never */
  bool differentiate, wrenches, zero_on_rejection, commands_from_joints, dampers;
  int acceleration_source, on_stale;
  double velocity_cutoff, acceleration_cutoff, max_condition, tolerance, observer_gain;
  double cannot_give; /* share of a force that the motors may leave over */
  double largest;     /* above which a number is a mistake */
  int64_t terms;
  int64_t stale_hold; /* how long efforts may stand after the inputs stopped [ns] */
  double *offsets;    /* (joints) added to measured positions */
  double *damping;    /* (actuated) for `on_stale` [N m s/rad, N s/m] */
  double *limits;     /* (actuated) */
  gate_rules_t gate;
  int command_count;      /* joints of the bare arrays; 0 for none */
  int32_t *command_order; /* (command_count) among the actuated joints */
  bool complete;          /* whether ~/joint_states is published */
  closing_rules_t closing;
  ptrdiff_t *parts;
} settings_t;

/* Closes loops that no Newton steps in a kernel close; false where there is no closed position. */
typedef bool (*closer_t)(void *context, const double *position, const double *guess, double *q);

/* How states are answered in which certain joints are known. */
typedef struct {
  uint8_t *measured; /* (joints) which: the key */
  uint8_t *wanted;   /* (joints) whose acceleration a reference gives; NULL for none */
  int acceleration_source;
  bool wrenches;
  int64_t terms;
  bool determined; /* false: these joints do not determine the others */
  bool reference_determined;
  kernel_t kernel;
  closing_t closing;
  bool by_newton;
  closer_t closer;
  void *closer_context;
  double *velocity, *acceleration, *wrench, *efforts;
  int known, wanted_count;
  int32_t *joints;        /* (known) joints that the kernel takes */
  int32_t *wanted_joints; /* (wanted_count) joints of the accelerations */
  uint8_t *chosen;        /* (joints) the same as `joints` */
  int seed_count, follower_count, redundant_count;
  int32_t *seeds;     /* measured joints of loops with redundant measurements */
  int32_t *followers; /* entries of q of the other joints of these loops */
  kernel_t settling;  /* (positions of other measured joints, guess) -> q, phi; 0 ports for none */
  int settling_count; /* of these joints */
  int32_t *settling_joints;
  int32_t *redundant;  /* measured joints that the kernel does not take */
  double *scales;      /* (redundant) change of each per change of the others, at least 1 */
  kernel_t completion; /* (q, velocity) -> qd */
} route_t;

/* How commands are converted that name certain joints and have certain fields. */
typedef struct {
  uint8_t *named; /* (joints) the key, with `fields` */
  int fields;
  uint8_t *measured; /* (joints) whose velocity damping uses; NULL for none */
  bool determined, moves, holds, needs_state, has_efforts;
  kernel_t kernel;
  closing_t closing;
  double *velocity, *effort, *state, *gain, *offset, *motors;
  const double *gains, *offsets; /* (2 nv), (actuated) as the settings have them */
  int known;
  int32_t *joints;
} command_route_t;

typedef struct {
  kernel_t momentum; /* (q, yd) -> p, free */
  kernel_t friction; /* (q, yd) -> force */
  kernel_t force;    /* (q, spanning efforts) -> force on y */
  bool wrench;       /* whether ~/estimated_wrench is published */
  kernel_t jacobian; /* (q) -> J by rows */
  kernel_t pose;     /* (q) -> 4 x 4 by rows */
  double point[3];
} observer_t;

typedef struct {
  kernel_t gravity; /* (q) -> force on y */
  kernel_t efforts; /* (q, force) -> efforts of the motors */
} hold_t;

typedef struct {
  template_t feedforward, arrays[3], completed[4], motors[8], external, wrench;
} outputs_t;

typedef struct {
  model_t model;
  settings_t settings;
  route_t *routes;
  int route_count;
  command_route_t *command_routes;
  int command_route_count;
  observer_t *observer; /* NULL where external efforts are not estimated */
  hold_t *hold;         /* NULL unless `on_stale` needs it */
  outputs_t outputs;
  double *scratch;
  void *owner;  /* of the arrays of kernels */
  void *blocks; /* all other memory of a configuration, see read_config.c */
} config_t;

/* Filtered rates of numbers: differences through a first-order low-pass. */
typedef struct {
  double *rate; /* NaN while it is not known */
  double *filtered, *value;
  int64_t *time, *began;
} rates_t;

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

typedef struct {
  int joints, nq, nv, ny, actuated, links, base_nv;
  double *block; /* all doubles that follow */
  double *position, *velocity, *effort;
  int64_t *time, *effort_time;
  uint8_t *moving;  /* (joints) whether the velocity is known */
  uint32_t *source; /* (joints) layout of the message that the position is from */
  rates_t velocity_rates, acceleration_rates, base_rates;
  double *q;               /* (nq) where the last state was closed */
  int64_t settled_in_vain; /* when no start told the branch, by the steady clock */
  bool answered;           /* whether there is a state that was answered; it is: */
  int64_t state_time;
  double *state;         /* (ny + nq + actuated) velocity, position, feedforward */
  uint8_t *state_joints; /* (joints) that it followed from */
  double *qd;            /* (nv) its completed velocity; */
  bool completed;        /* whether that is known */
  double *reference;     /* (joints) */
  uint8_t *referenced;
  int64_t reference_time;
  double base_position[7], base_twist[6];
  int64_t base_time;
  double *wrenches; /* (links x 6) */
  int64_t *wrench_time;
  double *command_q;
  int64_t command_stamp, command_steady;  /* of the last that was answered */
  int64_t last_command_stamp;             /* of the last that was read */
  double *integral, *drive, *external;    /* of the observer, (ny) */
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
  uint8_t *measured, *wanted;  /* (joints) of a route */
  bool has_wanted;
  uint8_t *named, *damped; /* (joints) of a command */
  int fields;
  bool has_damped;
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
  bool others;    /* whether the message that is being answered names no joint of ours */
  uint8_t *asked; /* what was asked for since the last configuration */
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
  bool (*listened)(void *context, int topic); /* whether it is worth the while */
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

/* Names. */
bool build_table(name_table_t *table);
int find_name(const name_table_t *table, text_t name);

/* Inside the machine; each works on the configuration and the state. */
void reject(machine_t *m, code_t code, int topic, const uint8_t *data, size_t size);
bool make_state(machine_t *m, config_t *config);
void free_state(state_t *state);
void forget_inputs(state_t *state);
/* Close loops from a position (nq) the next time. */
void start_at(state_t *state, const double *q);
void forget_differences(state_t *state);
bool same_joints(const model_t *one, const model_t *other);
int64_t longest_gap(const settings_t *settings);
void update_rate(rates_t *rates, int k, double value, int64_t time, double cutoff, int64_t longest);
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
void emit_efforts(const sink_t *sink, int topic, template_t *message, const double *efforts,
                  int64_t stamp);
/* The bare array of efforts, through its gate, if it comes from this source. */
void send_effort_array(machine_t *m, const sink_t *sink, bool from_joints, const double *efforts,
                       moment_t moment);
void send_array(machine_t *m, const sink_t *sink, int topic, const double *values);
void ask(machine_t *m, uint8_t kind, const uint8_t *key, size_t size);
int64_t monotonic(void);

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
