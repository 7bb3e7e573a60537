/* Plans are made here, with every size and place checked, so that none has to be later. */
#include "plan.h"

#include <string.h>

static const Py_ssize_t NUMBER = sizeof(double);

static bool read_rates(plan_t *plan, PyObject *given, Py_ssize_t joints, rates_t *rates)
{
  PyObject *numbers, *values, *times;
  int wanted;
  if (!PyArg_ParseTuple(given, "pdOOO", &wanted, &rates->cutoff, &numbers, &values, &times)
      || !hold_vector(&plan->held, numbers, &rates->rates)
      || !hold_vector(&plan->held, values, &rates->values)
      || !hold_times(&plan->held, times, &rates->times))
    return false;
  rates->wanted = wanted;
  return fits(rates->rates.count == joints && rates->values.count == joints
                  && rates->times.count == joints,
              "a rate");
}

static bool read_kept(plan_t *plan, PyObject *given)
{
  kept_t *kept = &plan->kept;
  PyObject *position, *velocity, *times, *velocities, *accelerations, *places, *offsets, *fresh;
  if (!PyArg_ParseTuple(given, "OOOO!O!dOOO", &position, &velocity, &times, &PyTuple_Type,
                        &velocities, &PyTuple_Type, &accelerations, &kept->longest, &places,
                        &offsets, &fresh)
      || !hold_vector(&plan->held, position, &kept->position)
      || !hold_vector(&plan->held, velocity, &kept->velocity)
      || !hold_times(&plan->held, times, &kept->times))
    return false;
  const Py_ssize_t joints = kept->position.count;
  const vector_t acceleration = plan->call.arrays[ACCELERATION];
  if (!read_rates(plan, velocities, joints, &kept->velocity_rates)
      || !read_rates(plan, accelerations, joints, &kept->acceleration_rates)
      || !hold_order(&plan->held, places, joints, &kept->places)
      || !fits(kept->velocity.count == joints && kept->times.count == joints
                   && kept->places.count == plan->position.count,
               "what is kept"))
    return false;
  if (kept->acceleration_rates.wanted) {
    const Py_ssize_t base = acceleration.count - kept->places.count;
    if (!fits(base >= 0, "the acceleration")) return false;
    plan->acceleration = (vector_t){acceleration.at + base, kept->places.count};
  }
  if (offsets != Py_None
      && (!hold_vector(&plan->held, offsets, &kept->offsets)
          || !fits(kept->offsets.count == kept->places.count, "an offset")))
    return false;
  if (fresh == Py_None) return true;
  const Py_buffer *view = hold(&plan->held, fresh, PyBUF_SIMPLE);
  if (view == NULL) return false;
  kept->fresh = view->buf;
  return fits(view->len == joints, "which joints are fresh");
}

static bool read_efforts(plan_t *plan, PyObject *given, Py_ssize_t names, form_t *form)
{
  PyObject *order, *target;
  return PyArg_ParseTuple(given, "nOO", &form->effort_at, &order, &target)
         && hold_order(&plan->held, order, names, &form->effort_order)
         && hold_order(&plan->held, target, plan->measured.count, &form->effort_target)
         && fits(form->effort_at > 0 && form->effort_at + NUMBER * names <= form->shape.size
                     && form->effort_order.count == form->effort_target.count,
                 "the efforts of a form");
}

static bool read_form(plan_t *plan, PyObject *given, form_t *form)
{
  PyObject *pattern, *mask, *order, *target, *efforts;
  Py_ssize_t names;
  int partial, refused;
  if (!PyArg_ParseTuple(given, "OOnnnnOOppO", &pattern, &mask, &form->shape.size, &names,
                        &form->position_at, &form->velocity_at, &order, &target, &partial, &refused,
                        &efforts))
    return false;
  if (!read_shape(&plan->held, pattern, mask, &form->shape)) return false;
  form->partial = partial;
  form->refused = refused;
  if (refused) return true;
  const bool measured = target == Py_None || !plan->kept.velocity_rates.wanted;
  if (!hold_order(&plan->held, order, names, &form->order)
      || !fits(form->position_at >= 0 && form->position_at + NUMBER * names <= form->shape.size
                   && form->velocity_at >= 0
                   && (!measured || form->velocity_at + NUMBER * names <= form->shape.size),
               "a form"))
    return false;
  if (efforts != Py_None && !read_efforts(plan, efforts, names, form)) return false;
  if (target == Py_None) return fits(form->order.count == plan->position.count, "an order");
  return hold_order(&plan->held, target, plan->kept.position.count, &form->target)
         && fits(form->target.count == form->order.count, "a target");
}

static bool read_kernel(plan_t *plan, PyObject *given)
{
  if (!read_call(&plan->held, given, &plan->call)
      || !fits(plan->call.count == 8 || plan->call.count == 9, "the feedforward"))
    return false;
  const vector_t velocity = plan->call.arrays[VELOCITY];
  const Py_ssize_t measured = plan->call.arrays[POSITION].count, base = velocity.count - measured;
  plan->position = plan->call.arrays[POSITION];
  plan->velocity = (vector_t){velocity.at + base, measured};
  return fits(base >= 0 && plan->call.health.count == HEALTH, "an array of the feedforward");
}

static bool read_plan(plan_t *plan, PyObject *description)
{
  PyObject *call, *completed, *measured, *kept, *forms, *messages;
  unsigned long long completion;
  int others;
  if (!PyArg_ParseTuple(description, "OKOOOO!O!LLpK", &call, &completion, &completed, &measured,
                        &kept, &PyTuple_Type, &forms, &PyTuple_Type, &messages, &plan->timeout,
                        &plan->jump, &others, &plan->of))
    return false;
  *(void **)&plan->completion = (void *)(uintptr_t)completion;
  plan->others = others;
  plan->form_count = (int)PyTuple_GET_SIZE(forms);
  plan->message_count = (int)PyTuple_GET_SIZE(messages);
  if (!fits(plan->form_count <= MOST_FORMS, "a form more")
      || !fits(plan->message_count >= 1 && plan->message_count <= MOST_MESSAGES, "the messages"))
    return false;
  if (!read_kernel(plan, call)) return false;
  if (kept != Py_None && !read_kept(plan, kept)) return false;
  if (completion != 0
      && (!hold_vector(&plan->held, completed, &plan->completed)
          || !hold_vector(&plan->held, measured, &plan->measured)))
    return false;
  for (int k = 0; k < plan->form_count; k++)
    if (!read_form(plan, PyTuple_GET_ITEM(forms, k), &plan->forms[k])) return false;
  for (int k = 0; k < plan->message_count; k++)
    if (!read_message(&plan->held, PyTuple_GET_ITEM(messages, k), &plan->messages[k])) return false;
  return true;
}

/* Stamps of the last message of each form, time that was seen last, and the times that the other
 * inputs are from. */
static bool read_times(plan_t *plan, PyObject *now)
{
  PyObject *times;
  long long latest, earliest, newest;
  if (!PyArg_ParseTuple(now, "LO!LL", &latest, &PyTuple_Type, &times, &earliest, &newest))
    return false;
  for (int k = 0; k < plan->form_count && k < PyTuple_GET_SIZE(times); k++)
    plan->forms[k].time = PyLong_AsLongLong(PyTuple_GET_ITEM(times, k));
  plan->latest = latest;
  plan->earliest = earliest;
  plan->newest = newest;
  return !PyErr_Occurred();
}

static void plan_free(void *of)
{
  plan_t *plan = of;
  if (plan == NULL) return;
  free_call(&plan->call);
  PyMem_Free(plan->room.at);
  let_go(&plan->held);
  PyMem_Free(plan);
}

static void *plan_make(PyObject *description, PyObject *now, last_state_t *state)
{
  plan_t *plan = PyMem_Calloc(1, sizeof(plan_t));
  if (plan == NULL) return PyErr_NoMemory();
  plan->state = state;
  if (read_plan(plan, description) && read_times(plan, now)) {
    const Py_ssize_t numbers =
        plan->call.arrays[VELOCITY].count + plan->call.q.count + plan_output(plan, EFFORTS)->count;
    plan->room = (vector_t){PyMem_Calloc((size_t)numbers + 1, sizeof(double)), numbers};
    if (plan->room.at != NULL) return plan;
    PyErr_NoMemory();
  }
  plan_free(plan);
  return NULL;
}

/* Nothing that the other has heard since Python made this one is forgotten. */
static void plan_begin(void *of, const void *of_before)
{
  plan_t *plan = of;
  const plan_t *before = of_before;
  last_state_expect(plan->state, plan->of, &plan->room);
  if (before == NULL) return;
  if (plan->latest < before->latest) plan->latest = before->latest;
  for (int k = 0; k < plan->form_count; k++) {
    form_t *form = &plan->forms[k];
    for (int i = 0; i < before->form_count; i++) {
      const form_t *same = &before->forms[i];
      if (same->shape.pattern == form->shape.pattern && form->time < same->time)
        form->time = same->time;
    }
  }
}

/* As `hear` of native_thread.py takes it. */
static PyObject *plan_heard(void *of)
{
  plan_t *plan = of;
  if (plan == NULL) Py_RETURN_NONE;
  PyObject *forms = PyTuple_New(plan->form_count);
  for (int k = 0; forms != NULL && k < plan->form_count; k++) {
    form_t *form = &plan->forms[k];
    PyObject *one = Py_BuildValue("LL", (long long)form->time, form->refusals);
    if (one == NULL)
      Py_CLEAR(forms);
    else
      PyTuple_SET_ITEM(forms, k, one);
    form->refusals = 0;
  }
  if (forms == NULL) return NULL;
  const last_state_t *state = plan->state; /* which nobody but its thread, at rest, writes */
  const Py_ssize_t count = state->known ? state->numbers.count : 0;
  const long long stale = plan->stale;
  plan->stale = 0;
  return Py_BuildValue("LNy#LL", (long long)plan->latest, forms, (const char *)state->numbers.at,
                       (Py_ssize_t)sizeof(double) * count, stale, (long long)plan->age);
}

bool plan_put(void *of, const Py_buffer *given, int64_t earliest, int64_t newest)
{
  static const int into[MOST_INPUTS] = {ACCELERATION, WRENCHES, GUESS, VELOCITY};
  plan_t *plan = of;
  for (int k = 0; k < MOST_INPUTS; k++) {
    const vector_t *array = &plan->call.arrays[into[k]];
    if (given[k].len > 0
        && (into[k] + 3 >= plan->call.count || given[k].len > array->count * NUMBER))
      return false;
  }
  for (int k = 0; k < MOST_INPUTS; k++)
    if (given[k].len > 0) memcpy(plan->call.arrays[into[k]].at, given[k].buf, (size_t)given[k].len);
  plan->earliest = earliest;
  plan->newest = newest;
  return true;
}

vector_t *plan_output(plan_t *plan, int output)
{
  return &plan->call.arrays[plan->call.count - 3 + output];
}

const kind_t joint_states = {
    .name = "joint_states",
    .make = plan_make,
    .free = plan_free,
    .begin = plan_begin,
    .heard = plan_heard,
    .answer = plan_answer,
};

const kind_t *find_kind(const char *name)
{
  const kind_t *const kinds[] = {&joint_states, &joint_commands};
  for (int k = 0; k < 2; k++)
    if (strcmp(name, kinds[k]->name) == 0) return kinds[k];
  PyErr_Format(PyExc_ValueError, "there are no threads of kind %s", name);
  return NULL;
}
