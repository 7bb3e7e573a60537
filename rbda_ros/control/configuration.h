/* Everything that C and Python have in common about the stream: lists of names, and the records of a
 * configuration (model, settings and kernels). configuration.py makes them, read_config.c reads them. */
#ifndef RBDA_ROS_CONFIGURATION_H
#define RBDA_ROS_CONFIGURATION_H

#include "cdr.h"
#include "../engine/closing.h"
#include "gate.h"

/* No robot has more joints than MAX_NAMES, and messages may be anyone's. */
enum { NOWHERE = -1, MAX_NAMES = 10000 };

/* Lists that Python has from here: `native.INPUTS` and so on. topics.py, rejections.py and settings.py
 * say what their entries mean. */
#define INPUTS_LIST(TOPIC)                                                                         \
  TOPIC(JOINT_STATES)                                                                              \
  TOPIC(REFERENCE)                                                                                 \
  TOPIC(BASE_STATE)                                                                                \
  TOPIC(EXTERNAL_WRENCH)                                                                           \
  TOPIC(JOINT_COMMANDS)
#define OUTPUTS_LIST(TOPIC)                                                                        \
  TOPIC(FEEDFORWARD)                                                                               \
  TOPIC(EFFORT_COMMANDS)                                                                           \
  TOPIC(POSITION_COMMANDS)                                                                         \
  TOPIC(VELOCITY_COMMANDS)                                                                         \
  TOPIC(COMPLETED_STATES)                                                                          \
  TOPIC(MOTOR_COMMANDS)                                                                            \
  TOPIC(EXTERNAL_EFFORT)                                                                           \
  TOPIC(ESTIMATED_WRENCH)
/* Why an input gives no answer. */
#define REJECTIONS_LIST(CODE)                                                                      \
  CODE(ACCEPTED)                                                                                   \
  CODE(UNREADABLE)                                                                                 \
  CODE(MISNAMED)                                                                                   \
  CODE(PARTIAL)                                                                                    \
  CODE(WRONG_SIZE)                                                                                 \
  CODE(NOT_FINITE)                                                                                 \
  CODE(NOT_A_ROTATION)                                                                             \
  CODE(STALE)                                                                                      \
  CODE(OUT_OF_ORDER)                                                                               \
  CODE(NO_VELOCITY)                                                                                \
  CODE(NO_ACCELERATION)                                                                            \
  CODE(NO_REFERENCE)                                                                               \
  CODE(NO_BASE_STATE)                                                                              \
  CODE(NO_STATE)                                                                                   \
  CODE(NO_EFFORT)                                                                                  \
  CODE(NO_WRENCH)                                                                                  \
  CODE(NOT_READY)                                                                                  \
  CODE(NOT_CLOSING)                                                                                \
  CODE(SINGULAR)                                                                                   \
  CODE(CONTRADICTION)                                                                              \
  CODE(MODEL)
/* Values of parameters. */
#define ACCELERATION_SOURCES_LIST(VALUE)                                                           \
  VALUE(ACCELERATION_ZERO, "zero")                                                                 \
  VALUE(ACCELERATION_REFERENCE, "reference")                                                       \
  VALUE(ACCELERATION_ESTIMATE, "estimate")
#define ON_STALE_LIST(VALUE)                                                                       \
  VALUE(STALE_NOTHING, "nothing")                                                                  \
  VALUE(STALE_ZERO, "zero")                                                                        \
  VALUE(STALE_GRAVITY, "gravity")                                                                  \
  VALUE(STALE_DAMPING, "damping")

#define ENUMERATOR(name, ...) name,
enum { INPUTS_LIST(ENUMERATOR) INPUT_TOPICS };
enum { OUTPUTS_LIST(ENUMERATOR) OUTPUT_TOPICS };
typedef enum { REJECTIONS_LIST(ENUMERATOR) CODES } code_t;
enum { ACCELERATION_SOURCES_LIST(ENUMERATOR) };
enum { ON_STALE_LIST(ENUMERATOR) };

/* Names, found by a hash. */
typedef struct {
  const char **names;
  int count;
  int32_t *slots;
  uint32_t mask;
} name_table_t;

/* Records of a configuration. Each list has every field of a record once. `DECLARE` makes the fields
 * members of a struct, and `READ` in read_config.c reads each from the attribute of that name of a
 * record of configuration.py. Sizes and bounds may use the model, and fields further up.
 *
 *   VALUE(type, name)                 a number (an int is at least 0), or a flag
 *   NAMES(name)                       a sequence of texts
 *   TIME(name)                        seconds, as nanoseconds
 *   CHOICE(name, texts)               the place of a text among others
 *   ARRAY(type, name, size)           so many items
 *   PLACES(name, size, least, below)  so many numbers, each within these bounds
 *   COUNTED(name, count, below)       any number of them, from 0 on
 *   MASK(name)                        a byte for each joint; NULL for None
 *   KERNEL(name, sizes...)            a kernel, and the sizes of its arrays; -1 for any size */
#define DECLARE_VALUE(type, name) type name
#define DECLARE_NAMES(name) name_table_t name
#define DECLARE_TIME(name) int64_t name
#define DECLARE_CHOICE(name, texts) int name
#define DECLARE_ARRAY(type, name, size) type *name
#define DECLARE_PLACES(name, size, least, below) int32_t *name
#define DECLARE_COUNTED(name, count, below)                                                        \
  int32_t *name;                                                                                   \
  int count
#define DECLARE_MASK(name) uint8_t *name
#define DECLARE_KERNEL(name, ...) kernel_t name

#define MODEL_FIELDS(DO)                                                                           \
  DO##_NAMES(joints); /* as messages name them, with the prefix */                                 \
  DO##_NAMES(links);                                                                               \
  DO##_VALUE(int, nq);                                                                             \
  DO##_VALUE(int, nv);                                                                             \
  DO##_VALUE(int, ny);                                                                             \
  DO##_VALUE(int, base_nq);                                                                        \
  DO##_VALUE(int, base_nv);                                                                        \
  DO##_VALUE(int, bodies);                                                                         \
  DO##_VALUE(int64_t, description); /* what the model was made from, */                            \
  DO##_VALUE(int64_t, version);     /* and which model it is */                                    \
  /* entry of q of each joint; NOWHERE for joints of several coordinates */                        \
  DO##_PLACES(entries, model->joints.count, NOWHERE, model->nq);                                   \
  DO##_PLACES(coordinates, model->joints.count, 0, model->nv); /* first velocity coordinate */     \
  DO##_ARRAY(uint8_t, angular, model->joints.count); /* whether the position is an angle */        \
  DO##_ARRAY(double, home, model->nq);               /* assembly */                                \
  DO##_COUNTED(actuated_joints, actuated, model->joints.count);                                    \
  DO##_COUNTED(independent_joints, independent, model->joints.count);                              \
  DO##_PLACES(y_coordinates, model->ny, 0, model->nv); /* velocity coordinates of y */             \
  /* body of each link; NOWHERE where a wrench moves nothing */                                    \
  DO##_PLACES(link_bodies, model->links.count, NOWHERE, model->bodies);                            \
  /* rotation by rows, and origin, of each link in the frame of its body */                        \
  DO##_ARRAY(double, link_frames, 12 * model->links.count);

typedef struct {
  MODEL_FIELDS(DECLARE)
} model_t;

/* Parameters of the node that are read as they are. */
#define PARAMETERS(DO)                                                                             \
  DO##_TIME(joint_state_timeout); /* 0 for never */                                                \
  DO##_TIME(stale_hold_time);     /* how long efforts may stand after the inputs stopped */        \
  DO##_CHOICE(acceleration_source, acceleration_sources);                                          \
  DO##_CHOICE(on_stale, on_stale_texts);                                                           \
  DO##_VALUE(bool, external_wrench);                                                               \
  DO##_VALUE(double, velocity_cutoff);                                                             \
  DO##_VALUE(double, acceleration_cutoff);                                                         \
  DO##_VALUE(double, max_condition_number);                                                        \
  DO##_VALUE(double, observer_gain);

/* What follows from parameters and the model. */
#define SETTINGS_FIELDS(DO)                                                                        \
  DO##_VALUE(bool, differentiate);                                                                 \
  DO##_VALUE(bool, zero_on_rejection);                                                             \
  DO##_VALUE(bool, commands_from_joints);                                                          \
  DO##_VALUE(bool, dampers);                                                                       \
  DO##_VALUE(bool, complete); /* whether ~/joint_states is published */                            \
  DO##_VALUE(double, tolerance);                                                                   \
  DO##_VALUE(double, cannot_give); /* share of a force that the motors may leave over */           \
  DO##_VALUE(double, largest);     /* above which a number is a mistake */                         \
  DO##_VALUE(int64_t, terms);                                                                      \
  DO##_ARRAY(double, offsets, model->joints.count); /* added to measured positions */              \
  DO##_ARRAY(double, damping, model->actuated);     /* for `on_stale` [N m s/rad, N s/m] */        \
  DO##_ARRAY(double, gains, 2 * model->nv); /* stiffness and damping of every coordinate */        \
  DO##_ARRAY(double, limits, model->actuated);                                                     \
  DO##_COUNTED(command_order, command_count, model->actuated); /* motors of the bare arrays */

typedef struct {
  PARAMETERS(DECLARE)
  SETTINGS_FIELDS(DECLARE)
  gate_rules_t gate;
  closing_rules_t closing;
} settings_t;

/* Closes loops that no Newton steps in a kernel close, from the guess into the guess; false where
 * there is no closed position. */
typedef bool (*closer_t)(void *context, const closing_t *closing);

/* How states are answered in which certain joints are known. */
#define ROUTE_KEY_FIELDS(DO)                                                                       \
  DO##_MASK(measured); /* which joints are known */                                                \
  DO##_MASK(wanted);   /* joints whose acceleration a reference gives; NULL for none */            \
  DO##_CHOICE(acceleration_source, acceleration_sources);                                          \
  DO##_VALUE(bool, wrenches);                                                                      \
  DO##_VALUE(int64_t, terms);                                                                      \
  DO##_VALUE(bool, determined); /* false: these joints do not determine the others */
#define ROUTE_FIELDS(DO)                                                                           \
  DO##_VALUE(bool, reference_determined);                                                          \
  DO##_COUNTED(joints, known, model->joints.count);               /* that the kernel takes */      \
  DO##_ARRAY(ptrdiff_t, entries, route->known);                   /* of q, of these joints */      \
  DO##_COUNTED(wanted_joints, wanted_count, model->joints.count); /* of the accelerations */       \
  /* measured joints of loops with redundant measurements, and entries of q of the other joints */ \
  DO##_COUNTED(seeds, seed_count, model->joints.count);                                            \
  DO##_COUNTED(followers, follower_count, model->nq);                                              \
  /* measured joints that the kernel does not take, and how far each moves per motion of those */  \
  DO##_COUNTED(redundant, redundant_count, model->joints.count);                                   \
  DO##_ARRAY(double, scales, route->redundant_count);                                              \
  DO##_COUNTED(settling_joints, settling_count, model->joints.count); /* see `settling` */         \
  DO##_KERNEL(completion, model->nq, model->ny, model->nv);           /* (q, velocity) -> qd */

typedef struct {
  ROUTE_KEY_FIELDS(DECLARE)
  ROUTE_FIELDS(DECLARE)
  kernel_t kernel;
  kernel_t settling; /* (positions of `settling_joints`, guess) -> q, phi; 0 ports for none */
  closing_t closing;
  closer_t closer; /* NULL where the kernel closes the loops */
  void *closer_context;
  double *velocity, *acceleration, *wrench, *efforts; /* arrays of the kernel */
  uint8_t *chosen;                                    /* (joints) the same as `joints` */
} route_t;

/* How commands are converted that name certain joints and have certain fields. */
#define COMMAND_KEY_FIELDS(DO)                                                                     \
  DO##_MASK(named);                                                                                \
  DO##_VALUE(int, fields);                                                                         \
  DO##_MASK(measured); /* joints whose velocity damping uses; NULL for none */                     \
  DO##_VALUE(bool, determined);
#define COMMAND_FIELDS(DO)                                                                         \
  DO##_VALUE(bool, moves);       /* whether a position is commanded or held, */                    \
  DO##_VALUE(bool, holds);       /* and whether it is held */                                      \
  DO##_VALUE(bool, needs_state); /* whether it depends on where the robot is */                    \
  DO##_VALUE(bool, has_efforts);                                                                   \
  DO##_COUNTED(joints, known, model->joints.count); /* that the kernel takes */                    \
  DO##_ARRAY(ptrdiff_t, entries, route->known);     /* of q, of these joints */                    \
  /* position, velocity, effort, guess, state, gains, limit, offsets; missed, motors, q, health */ \
  DO##_KERNEL(kernel, -1, model->ny, model->nv, model->nq,                                         \
              model->ny + model->nq + model->actuated, 2 * model->nv, model->actuated,             \
              model->actuated, model->ny, 3 * model->actuated, model->nq, COMMAND_HEALTH);

typedef struct {
  COMMAND_KEY_FIELDS(DECLARE)
  COMMAND_FIELDS(DECLARE)
  closing_t closing;
  double *velocity, *effort, *state, *gain, *offset, *motors; /* arrays of the kernel */
} command_route_t;

/* How external efforts are estimated; with `wrench`, ~/estimated_wrench is published. */
#define OBSERVER_FIELDS(DO)                                                                        \
  DO##_KERNEL(force, model->nq, model->nv, model->ny);    /* (q, spanning efforts) -> on y */      \
  DO##_KERNEL(friction, model->nq, model->ny, model->ny); /* (q, yd) -> force */                   \
  DO##_KERNEL(momentum, model->nq, model->ny, model->ny, model->ny); /* (q, yd) -> p, free */      \
  DO##_VALUE(bool, wrench);
#define WRENCH_FIELDS(DO)                                                                          \
  DO##_ARRAY(double, point, 3);                    /* on the link */                               \
  DO##_KERNEL(pose, model->nq, 16);                /* (q) -> 4 x 4 by rows */                      \
  DO##_KERNEL(jacobian, model->nq, 6 * model->ny); /* (q) -> J by rows */

typedef struct {
  OBSERVER_FIELDS(DECLARE)
  WRENCH_FIELDS(DECLARE)
} observer_t;

/* Gravity compensation. */
#define HOLD_FIELDS(DO)                                                                            \
  DO##_KERNEL(gravity, model->nq, model->ny); /* (q) -> force on y */                              \
  /* (q, force) -> efforts of the motors */                                                        \
  DO##_KERNEL(efforts, model->nq, model->ny, model->actuated);

typedef struct {
  HOLD_FIELDS(DECLARE)
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
  void *owner;  /* the configuration in Python, which has the arrays of kernels */
  void *blocks; /* all other memory of a configuration, see read_config.c */
} config_t;

#endif
