/* ~/joint_commands to ~/motor_commands: what `JointCommands` does with commands like the last. */
#include <math.h>
#include <string.h>

#include "kind.h"
#include "message.h"
#include "stream_call.h"

enum { MOST_WAYS = 8, MOST_ANSWERS = 4 };

static const Py_ssize_t NUMBER = sizeof(double);

/* Arrays of the kernel, as commanded_motors.py has them. */
enum {
  POSITION,
  VELOCITY,
  EFFORT,
  GUESS,
  STATE,
  GAINS,
  LIMIT,
  OFFSETS,
  MISSED,
  MOTORS,
  Q,
  HEALTH_AT
};
enum { ARRAYS = HEALTH_AT + 1, LEFT_OVER = HEALTH, FORCE, NUMBERS };

/* See `CommandWay`. */
typedef struct {
  shape_t shape;
  Py_ssize_t position_at, velocity_at, effort_at; /* 0 where commands have none of them */
  order_t order;                                  /* places in the message of the joints to go by */
  order_t held; /* their entries of q, held where positions are not commanded */
  order_t effort_source, effort_target;
  vector_t velocity, measured_q; /* parts of inputs */
  bool moves, needs_state;
  call_t call;
  message_t messages[MOST_ANSWERS];
  int message_count;
} way_t;

typedef struct {
  held_t held;
  way_t ways[MOST_WAYS];
  int count;
  way_t *used;             /* for the last command */
  PyObject *beside;        /* the thread that answers joint states, or NULL */
  last_state_t *state;     /* and its last state */
  unsigned long long of;   /* the call that this must be of */
  long long timeout, jump; /* [ns] */
  double cannot_give;      /* share of a force that may be left over */
  long long last, latest;  /* stamp of a command, and time that was seen [ns] */
} commands_t;

static bool inside(const way_t *way, Py_ssize_t at, Py_ssize_t names)
{
  return at >= 0 && at + NUMBER * names <= way->shape.size;
}

static bool read_way(held_t *held, PyObject *given, way_t *way)
{
  PyObject *pattern, *mask, *order, *kept, *source, *target, *call, *messages;
  Py_ssize_t names;
  int moves, needs_state;
  if (!PyArg_ParseTuple(given, "OOnnnnnOOOOppOO!", &pattern, &mask, &way->shape.size, &names,
                        &way->position_at, &way->velocity_at, &way->effort_at, &order, &kept,
                        &source, &target, &moves, &needs_state, &call, &PyTuple_Type, &messages)
      || !read_shape(held, pattern, mask, &way->shape) || !read_call(held, call, &way->call)
      || !fits(way->call.count == ARRAYS && way->call.health.count == NUMBERS, "the kernel"))
    return false;
  way->moves = moves;
  way->needs_state = needs_state;
  const vector_t *arrays = way->call.arrays;
  const vector_t state = arrays[STATE], velocity = arrays[VELOCITY];
  const Py_ssize_t nq = arrays[GUESS].count;
  if (!hold_order(held, order, names, &way->order) || !hold_order(held, kept, nq, &way->held)
      || !hold_order(held, source, names, &way->effort_source)
      || !hold_order(held, target, arrays[EFFORT].count, &way->effort_target)
      || !fits(inside(way, way->position_at, names) && inside(way, way->velocity_at, names)
                   && inside(way, way->effort_at, names),
               "a command"))
    return false;
  const Py_ssize_t joints = way->order.count;
  way->velocity = (vector_t){velocity.at + velocity.count - joints, joints};
  way->measured_q = (vector_t){state.at + velocity.count, nq};
  if (!fits(joints <= velocity.count && velocity.count + nq <= state.count
                && arrays[POSITION].count == (moves ? joints : 0)
                && (way->held.count == 0 || way->held.count == joints)
                && way->effort_source.count == way->effort_target.count
                && (way->effort_source.count == 0 || way->effort_at > 0)
                && (needs_state || (moves && way->position_at > 0)),
            "an array of a command"))
    return false;
  way->message_count = (int)PyTuple_GET_SIZE(messages);
  if (!fits(way->message_count >= 1 && way->message_count <= MOST_ANSWERS, "the answers"))
    return false;
  for (int k = 0; k < way->message_count; k++)
    if (!read_message(held, PyTuple_GET_ITEM(messages, k), &way->messages[k])
        || !fits(way->messages[k].data != NULL, "an answer"))
      return false;
  return true;
}

static bool read_commands(commands_t *plan, PyObject *description, PyObject *now)
{
  PyObject *beside, *ways;
  int used;
  if (!PyArg_ParseTuple(description, "OKLLdO!", &beside, &plan->of, &plan->timeout, &plan->jump,
                        &plan->cannot_give, &PyTuple_Type, &ways)
      || !PyArg_ParseTuple(now, "iLL", &used, &plan->last, &plan->latest))
    return false;
  if (beside != Py_None) {
    plan->beside = Py_NewRef(beside);
    plan->state = state_of(beside);
    if (plan->state == NULL) return false;
  }
  const int count = (int)PyTuple_GET_SIZE(ways);
  if (!fits(count <= MOST_WAYS && used < count, "a way")) return false;
  for (; plan->count < count; plan->count++)
    if (!read_way(&plan->held, PyTuple_GET_ITEM(ways, plan->count), &plan->ways[plan->count]))
      return false;
  if (used >= 0) plan->used = &plan->ways[used];
  return true;
}

static void commands_free(void *of)
{
  commands_t *plan = of;
  if (plan == NULL) return;
  for (int k = 0; k < MOST_WAYS; k++) free_call(&plan->ways[k].call);
  let_go(&plan->held);
  Py_XDECREF(plan->beside);
  PyMem_Free(plan);
}

static void *commands_make(PyObject *description, PyObject *now, last_state_t *state)
{
  (void)state; /* of this thread, which answers none */
  commands_t *plan = PyMem_Calloc(1, sizeof *plan);
  if (plan == NULL) return PyErr_NoMemory();
  if (read_commands(plan, description, now)) return plan;
  commands_free(plan);
  return NULL;
}

static void commands_begin(void *plan, const void *before)
{
  (void)plan; /* Python takes the one before back first, and knows what it heard */
  (void)before;
}

static PyObject *commands_heard(void *of)
{
  const commands_t *plan = of;
  if (plan == NULL) Py_RETURN_NONE;
  const int used = plan->used == NULL ? -1 : (int)(plan->used - plan->ways);
  return Py_BuildValue("iLL", used, plan->last, plan->latest);
}

/* Without the interpreter. */

static way_t *find_way(commands_t *plan, const uint8_t *data, Py_ssize_t size)
{
  for (int k = 0; k < plan->count; k++)
    if (has_shape(&plan->ways[k].shape, data, size)) return &plan->ways[k];
  return NULL;
}

static bool take_state(const commands_t *plan, const way_t *way, int64_t now)
{
  int64_t time;
  return plan->state != NULL
         && last_state_get(plan->state, plan->of, way->call.arrays[STATE], &time)
         && (plan->timeout == 0 || (now - time <= plan->timeout && time - now <= plan->timeout));
}

/* Give the kernel what is commanded. It starts where the last command ended, or holds where the
 * robot is. */
static void give(const commands_t *plan, way_t *way, const uint8_t *data)
{
  const vector_t *arrays = way->call.arrays;
  const size_t nq = sizeof(double) * (size_t)way->call.guess.count;
  if (!way->moves || way->held.count > 0)
    memcpy(way->call.guess.at, way->measured_q.at, nq);
  else if (plan->used != NULL)
    memmove(way->call.guess.at, plan->used->call.guess.at, nq); /* perhaps its own */
  for (Py_ssize_t k = 0; k < way->held.count; k++)
    arrays[POSITION].at[k] = way->measured_q.at[way->held.at[k]];
  if (way->held.count == 0 && way->position_at > 0)
    gather(data + way->position_at, way->order, arrays[POSITION].at);
  if (way->velocity_at > 0) gather(data + way->velocity_at, way->order, way->velocity.at);
  for (Py_ssize_t k = 0; k < way->effort_source.count; k++)
    memcpy(&arrays[EFFORT].at[way->effort_target.at[k]],
           data + way->effort_at + NUMBER * way->effort_source.at[k], sizeof(double));
}

static outcome_t commands_answer(void *of, rcl_clock_t *clock, const uint8_t *data, Py_ssize_t size,
                                 record_t *record)
{
  commands_t *plan = of;
  const int64_t began = monotonic();
  int64_t now;
  way_t *way = find_way(plan, data, size);
  if (way == NULL || !time_now(clock, &now)) return FOR_PYTHON;
  const int64_t stamp = stamp_of(data), timeout = plan->timeout;
  if (now < plan->latest - plan->jump) return FOR_PYTHON;
  if (timeout != 0 && (now - stamp > timeout || stamp - now > timeout || stamp < plan->last))
    return FOR_PYTHON;
  if (way->needs_state && !take_state(plan, way, now)) return FOR_PYTHON;
  give(plan, way, data);
  const double *health = way->call.health.at;
  if (!compute(&way->call)) return FOR_PYTHON;
  if (!(health[LEFT_OVER] <= plan->cannot_give * health[FORCE])
      || !publish(&way->messages[0], data)) {
    restore_guess(&way->call);
    return FOR_PYTHON;
  }
  for (int k = 1; k < way->message_count; k++) publish(&way->messages[k], data);
  keep_guess(&way->call);
  plan->used = way;
  plan->last = stamp;
  plan->latest = now;
  memcpy(record->health, health, sizeof record->health);
  record->age = stamp != 0 ? (double)(now - stamp) * 1e-9 : NAN;
  record->duration = (double)(monotonic() - began) * 1e-9;
  return ANSWERED;
}

const kind_t joint_commands = {
    .name = "joint_commands",
    .make = commands_make,
    .free = commands_free,
    .begin = commands_begin,
    .heard = commands_heard,
    .answer = commands_answer,
};
