/* Plans are made here, with every size and place checked, so that none has to be later. */
#include "plan.h"

#include <string.h>

static const Py_ssize_t NUMBER = sizeof(double);

static Py_buffer *hold(plan_t *plan, PyObject *object, int flags)
{
  if (plan->held == MOST_VIEWS) {
    PyErr_SetString(PyExc_ValueError, "a plan has too many arrays");
    return NULL;
  }
  Py_buffer *view = &plan->views[plan->held];
  if (PyObject_GetBuffer(object, view, flags) < 0) return NULL;
  plan->held++;
  return view;
}

static bool hold_vector(plan_t *plan, PyObject *object, vector_t *vector)
{
  const Py_buffer *view = hold(plan, object, PyBUF_WRITABLE);
  if (view == NULL) return false;
  *vector = (vector_t){view->buf, view->len / NUMBER};
  return true;
}

/* Places in something that has `size` numbers. */
static bool hold_order(plan_t *plan, PyObject *object, Py_ssize_t size, order_t *order)
{
  const Py_buffer *view = hold(plan, object, PyBUF_SIMPLE);
  if (view == NULL) return false;
  *order = (order_t){view->buf, view->len / (Py_ssize_t)sizeof(int64_t)};
  for (Py_ssize_t k = 0; k < order->count; k++) {
    if (order->at[k] < 0 || order->at[k] >= size) {
      PyErr_SetString(PyExc_ValueError, "a place is beyond the end");
      return false;
    }
  }
  return true;
}

static bool fits(bool so, const char *what)
{
  if (!so) PyErr_Format(PyExc_ValueError, "%s does not fit", what);
  return so;
}

static bool hold_times(plan_t *plan, PyObject *object, times_t *times)
{
  const Py_buffer *view = hold(plan, object, PyBUF_WRITABLE);
  if (view == NULL) return false;
  *times = (times_t){view->buf, view->len / (Py_ssize_t)sizeof(int64_t)};
  return true;
}

static bool read_rates(plan_t *plan, PyObject *given, Py_ssize_t joints, rates_t *rates)
{
  PyObject *numbers, *values, *times;
  int wanted;
  if (!PyArg_ParseTuple(given, "pdOOO", &wanted, &rates->cutoff, &numbers, &values, &times)
      || !hold_vector(plan, numbers, &rates->rates) || !hold_vector(plan, values, &rates->values)
      || !hold_times(plan, times, &rates->times))
    return false;
  rates->wanted = wanted;
  return fits(rates->rates.count == joints && rates->values.count == joints
              && rates->times.count == joints, "a rate");
}

static bool read_kept(plan_t *plan, PyObject *given)
{
  kept_t *kept = &plan->kept;
  PyObject *position, *velocity, *times, *velocities, *accelerations, *places, *offsets, *fresh;
  if (!PyArg_ParseTuple(given, "OOOO!O!dOOO", &position, &velocity, &times, &PyTuple_Type,
                        &velocities, &PyTuple_Type, &accelerations, &kept->longest, &places,
                        &offsets, &fresh)
      || !hold_vector(plan, position, &kept->position)
      || !hold_vector(plan, velocity, &kept->velocity) || !hold_times(plan, times, &kept->times))
    return false;
  const Py_ssize_t joints = kept->position.count;
  const vector_t acceleration = plan->arrays[ACCELERATION];
  if (!read_rates(plan, velocities, joints, &kept->velocity_rates)
      || !read_rates(plan, accelerations, joints, &kept->acceleration_rates)
      || !hold_order(plan, places, joints, &kept->places)
      || !fits(kept->velocity.count == joints && kept->times.count == joints
               && kept->places.count == plan->position.count, "what is kept"))
    return false;
  if (kept->acceleration_rates.wanted) {
    const Py_ssize_t base = acceleration.count - kept->places.count;
    if (!fits(base >= 0, "the acceleration")) return false;
    plan->acceleration = (vector_t){acceleration.at + base, kept->places.count};
  }
  if (offsets != Py_None
      && (!hold_vector(plan, offsets, &kept->offsets)
          || !fits(kept->offsets.count == kept->places.count, "an offset")))
    return false;
  if (fresh == Py_None) return true;
  const Py_buffer *view = hold(plan, fresh, PyBUF_SIMPLE);
  if (view == NULL) return false;
  kept->fresh = view->buf;
  return fits(view->len == joints, "which joints are fresh");
}

static bool read_efforts(plan_t *plan, PyObject *given, Py_ssize_t names, form_t *form)
{
  PyObject *order, *target;
  return PyArg_ParseTuple(given, "nOO", &form->effort_at, &order, &target)
         && hold_order(plan, order, names, &form->effort_order)
         && hold_order(plan, target, plan->measured.count, &form->effort_target)
         && fits(form->effort_at > 0 && form->effort_at + NUMBER * names <= form->size
                 && form->effort_order.count == form->effort_target.count, "the efforts of a form");
}

static bool read_form(plan_t *plan, PyObject *given, form_t *form)
{
  PyObject *pattern, *mask, *order, *target, *efforts;
  Py_ssize_t names;
  int partial, refused;
  if (!PyArg_ParseTuple(given, "OOnnnnOOppO", &pattern, &mask, &form->size, &names,
                        &form->position_at, &form->velocity_at, &order, &target, &partial,
                        &refused, &efforts))
    return false;
  const Py_buffer *view = hold(plan, pattern, PyBUF_SIMPLE);
  if (view == NULL) return false;
  const Py_buffer *masked = hold(plan, mask, PyBUF_SIMPLE);
  if (masked == NULL) return false;
  form->pattern = view->buf;
  form->mask = masked->buf;
  form->compared = view->len;
  form->partial = partial;
  form->refused = refused;
  if (!fits(masked->len == view->len && view->len <= form->size
            && form->size >= STAMP_AT + STAMP_SIZE, "the mask of a form"))
    return false;
  if (refused) return true;
  const bool measured = target == Py_None || !plan->kept.velocity_rates.wanted;
  if (!hold_order(plan, order, names, &form->order)
      || !fits(form->position_at >= 0 && form->position_at + NUMBER * names <= form->size
               && form->velocity_at >= 0
               && (!measured || form->velocity_at + NUMBER * names <= form->size), "a form"))
    return false;
  if (efforts != Py_None && !read_efforts(plan, efforts, names, form)) return false;
  if (target == Py_None) return fits(form->order.count == plan->position.count, "an order");
  return hold_order(plan, target, plan->kept.position.count, &form->target)
         && fits(form->target.count == form->order.count, "a target");
}

static bool read_message(plan_t *plan, PyObject *given, message_t *message)
{
  PyObject *data, *parts;
  unsigned long long publisher;
  int stamped, optional;
  if (!PyArg_ParseTuple(given, "KOppiO!", &publisher, &data, &stamped, &optional, &message->when,
                        &PyTuple_Type, &parts))
    return false;
  message->publisher = (rcl_publisher_t *)(uintptr_t)publisher;
  message->stamped = stamped;
  message->optional = optional;
  if (data == Py_None) return fits(optional, "a message without bytes");
  const Py_buffer *view = hold(plan, data, PyBUF_WRITABLE);
  if (view == NULL) return false;
  message->data = view->buf;
  message->size = view->len;
  message->count = (int)PyTuple_GET_SIZE(parts);
  if (!fits(message->count <= MOST_PARTS && (!stamped || view->len >= STAMP_AT + STAMP_SIZE),
            "a message"))
    return false;
  for (int k = 0; k < message->count; k++) {
    part_t *part = &message->parts[k];
    PyObject *values, *order;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(parts, k), "OOn", &values, &order, &part->at)
        || !hold_vector(plan, values, &part->values)
        || !hold_order(plan, order, part->values.count, &part->order)
        || !fits(part->at >= 0 && part->at + NUMBER * part->order.count <= message->size,
                 "a part of a message"))
      return false;
  }
  return true;
}

static bool read_kernel(plan_t *plan, PyObject *arrays)
{
  plan->array_count = (int)PyTuple_GET_SIZE(arrays);
  if (!fits(plan->array_count == 8 || plan->array_count == 9, "the feedforward")) return false;
  for (int k = 0; k < plan->array_count; k++)
    if (!hold_vector(plan, PyTuple_GET_ITEM(arrays, k), &plan->arrays[k])) return false;
  const vector_t velocity = plan->arrays[VELOCITY];
  const Py_ssize_t measured = plan->arrays[POSITION].count, base = velocity.count - measured;
  plan->position = plan->arrays[POSITION];
  plan->velocity = (vector_t){velocity.at + base, measured};
  const vector_t q = *plan_output(plan, SPANNING_POSITION), efforts = *plan_output(plan, EFFORTS);
  plan->state.count = velocity.count + q.count + efforts.count;
  plan->state.at = PyMem_Calloc((size_t)plan->state.count + 1, sizeof(double));
  plan->start.count = plan->arrays[GUESS].count;
  plan->start.at = PyMem_Calloc((size_t)plan->start.count + 1, sizeof(double));
  if (plan->state.at == NULL || plan->start.at == NULL) {
    PyErr_NoMemory();
    return false;
  }
  return fits(base >= 0 && plan_output(plan, HEALTH_NUMBERS)->count == HEALTH
              && q.count == plan->arrays[GUESS].count, "an array of the feedforward");
}

static bool read_plan(plan_t *plan, PyObject *description)
{
  PyObject *arrays, *completed, *measured, *kept, *forms, *messages;
  unsigned long long kernel, completion;
  int others;
  if (!PyArg_ParseTuple(description, "KO!KOOOO!O!dddidLLp", &kernel, &PyTuple_Type, &arrays,
                        &completion, &completed, &measured, &kept, &PyTuple_Type, &forms,
                        &PyTuple_Type, &messages,
                        &plan->precise, &plan->closed, &plan->nearby, &plan->repeats,
                        &plan->max_condition, &plan->timeout, &plan->jump, &others))
    return false;
  plan->kernel = (void *)(uintptr_t)kernel;
  plan->completion = (void *)(uintptr_t)completion;
  plan->others = others;
  plan->form_count = (int)PyTuple_GET_SIZE(forms);
  plan->message_count = (int)PyTuple_GET_SIZE(messages);
  if (!fits(kernel != 0, "the kernel") || !fits(plan->form_count <= MOST_FORMS, "a form more")
      || !fits(plan->message_count >= 1 && plan->message_count <= MOST_MESSAGES, "the messages"))
    return false;
  if (!read_kernel(plan, arrays)) return false;
  if (kept != Py_None && !read_kept(plan, kept)) return false;
  if (completion != 0 && (!hold_vector(plan, completed, &plan->completed)
                          || !hold_vector(plan, measured, &plan->measured)))
    return false;
  for (int k = 0; k < plan->form_count; k++)
    if (!read_form(plan, PyTuple_GET_ITEM(forms, k), &plan->forms[k])) return false;
  for (int k = 0; k < plan->message_count; k++)
    if (!read_message(plan, PyTuple_GET_ITEM(messages, k), &plan->messages[k])) return false;
  return true;
}

plan_t *plan_new(PyObject *description)
{
  plan_t *plan = PyMem_Calloc(1, sizeof(plan_t));
  if (plan == NULL) {
    PyErr_NoMemory();
    return NULL;
  }
  if (!read_plan(plan, description)) {
    plan_free(plan);
    return NULL;
  }
  return plan;
}

void plan_free(plan_t *plan)
{
  if (plan == NULL) return;
  while (plan->held > 0) PyBuffer_Release(&plan->views[--plan->held]);
  PyMem_Free(plan->state.at);
  PyMem_Free(plan->start.at);
  PyMem_Free(plan);
}

vector_t *plan_output(plan_t *plan, int output)
{
  return &plan->arrays[plan->array_count - 3 + output];
}

PyObject *plan_heard(plan_t *plan)
{
  if (plan == NULL) Py_RETURN_NONE;
  PyObject *forms = PyTuple_New(plan->form_count);
  for (int k = 0; forms != NULL && k < plan->form_count; k++) {
    form_t *form = &plan->forms[k];
    PyObject *one = Py_BuildValue("LL", (long long)form->time, form->refusals);
    if (one == NULL) Py_CLEAR(forms);
    else PyTuple_SET_ITEM(forms, k, one);
    form->refusals = 0;
  }
  if (forms == NULL) return NULL;
  const vector_t state = plan->answered ? plan->state : (vector_t){plan->state.at, 0};
  const long long stale = plan->stale;
  plan->stale = 0;
  return Py_BuildValue("LNy#LL", (long long)plan->latest, forms, (const char *)state.at,
                       (Py_ssize_t)sizeof(double) * state.count, stale, (long long)plan->age);
}

bool plan_put(plan_t *plan, const Py_buffer *given, int64_t earliest, int64_t newest)
{
  static const int into[MOST_INPUTS] = {ACCELERATION, WRENCHES, GUESS, VELOCITY};
  for (int k = 0; k < MOST_INPUTS; k++) {
    const vector_t *array = &plan->arrays[into[k]];
    if (given[k].len > 0 && (into[k] + 3 >= plan->array_count
                             || given[k].len > array->count * NUMBER))
      return false;
  }
  for (int k = 0; k < MOST_INPUTS; k++)
    if (given[k].len > 0) memcpy(plan->arrays[into[k]].at, given[k].buf, (size_t)given[k].len);
  plan->earliest = earliest;
  plan->newest = newest;
  return true;
}
