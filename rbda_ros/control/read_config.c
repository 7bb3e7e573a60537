#include "read_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Memory that goes with a configuration. */
typedef struct block {
  struct block *next;
  double data[];
} block_t;

/* So many zero bytes, freed with the configuration. */
static void *keep(config_t *config, size_t size)
{
  block_t *block = calloc(1, sizeof *block + size + 1);
  if (block == NULL) return PyErr_NoMemory();
  block->next = config->blocks;
  config->blocks = block;
  return block->data;
}

static bool fits(bool so, const char *what)
{
  if (!so && !PyErr_Occurred())
    PyErr_Format(PyExc_ValueError, "configuration: %s does not fit", what);
  return so;
}

static bool get_integer(PyObject *of, const char *name, int64_t *value)
{
  PyObject *found = PyObject_GetAttrString(of, name);
  if (found == NULL) return false;
  *value = PyLong_AsLongLong(found);
  Py_DECREF(found);
  return PyErr_Occurred() == NULL;
}

static bool get_count(PyObject *of, const char *name, int *value)
{
  int64_t wide;
  if (!get_integer(of, name, &wide) || !fits(wide >= 0 && wide < INT32_MAX, name)) return false;
  *value = (int)wide;
  return true;
}

static bool get_flag(PyObject *of, const char *name, bool *value)
{
  PyObject *found = PyObject_GetAttrString(of, name);
  if (found == NULL) return false;
  const int truth = PyObject_IsTrue(found);
  Py_DECREF(found);
  *value = truth > 0;
  return truth >= 0;
}

static bool get_number(PyObject *of, const char *name, double *value)
{
  PyObject *found = PyObject_GetAttrString(of, name);
  if (found == NULL) return false;
  *value = PyFloat_AsDouble(found);
  Py_DECREF(found);
  return PyErr_Occurred() == NULL;
}

/* The memory of an array; whoever owns the configuration keeps it. */
static bool memory_of(PyObject *array, size_t item, void **at, size_t *count)
{
  Py_buffer view;
  if (PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS) < 0) return false;
  *at = view.buf;
  *count = (size_t)view.len / item;
  const bool right = (size_t)view.itemsize == item;
  PyBuffer_Release(&view);
  return fits(right, "the type of an array");
}

/* A copy of an array; `size` items, or any number where that is negative. */
static bool copy_array(config_t *config, PyObject *of, const char *name, size_t item, int64_t size,
                       void *into, int *count)
{
  void *at;
  size_t found;
  PyObject *array = PyObject_GetAttrString(of, name);
  if (array == NULL) return false;
  const bool read =
      memory_of(array, item, &at, &found) && fits(size < 0 || found == (size_t)size, name);
  if (read) {
    void *copied = *(void **)into = keep(config, item * found);
    if (copied != NULL) memcpy(copied, at, item * found);
    if (count != NULL) *count = (int)found;
  }
  Py_DECREF(array);
  return read && !PyErr_Occurred();
}

static bool copy_numbers(config_t *config, PyObject *of, const char *name, int64_t size,
                         double **into)
{
  return copy_array(config, of, name, sizeof(double), size, into, NULL);
}

/* Places below a bound; `from` is the least. */
static bool copy_places(config_t *config, PyObject *of, const char *name, int64_t size, int from,
                        int below, int32_t **into, int *count)
{
  int found;
  if (!copy_array(config, of, name, sizeof(int32_t), size, into, &found)) return false;
  if (count != NULL) *count = found;
  for (int k = 0; k < found; k++)
    if (!fits((*into)[k] >= from && (*into)[k] < below, name)) return false;
  return true;
}

static bool copy_mask(config_t *config, PyObject *of, const char *name, int joints, uint8_t **into)
{
  PyObject *found = PyObject_GetAttrString(of, name);
  if (found == NULL) return false;
  const bool none = found == Py_None;
  Py_DECREF(found);
  *into = NULL;
  return none || copy_array(config, of, name, 1, joints, into, NULL);
}

static bool read_names(PyObject *of, const char *name, name_table_t *table)
{
  PyObject *found = PyObject_GetAttrString(of, name);
  PyObject *list = found == NULL ? NULL : PySequence_Fast(found, "names are a sequence");
  Py_XDECREF(found);
  if (list == NULL) return false;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  table->names = calloc((size_t)count + 1, sizeof(char *));
  bool good = fits(count < INT32_MAX / 4, name) && table->names != NULL;
  for (Py_ssize_t k = 0; good && k < count; k++) {
    const char *text = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(list, k));
    table->names[k] = text == NULL ? NULL : strdup(text);
    good = table->names[k] != NULL;
    if (good) table->count++;
  }
  Py_DECREF(list);
  if (good && build_table(table)) return true;
  if (!PyErr_Occurred()) PyErr_NoMemory();
  return false;
}

static void free_names(name_table_t *table)
{
  for (int k = 0; k < table->count; k++) free(table->names[k]);
  free(table->names);
  free(table->slots);
}

static bool read_model(PyObject *of, config_t *config)
{
  model_t *model = &config->model;
  int joints;
  if (!read_names(of, "joint_names", &model->joints) || !read_names(of, "link_names", &model->links)
      || !get_count(of, "nq", &model->nq) || !get_count(of, "nv", &model->nv)
      || !get_count(of, "ny", &model->ny) || !get_count(of, "base_nq", &model->base_nq)
      || !get_count(of, "base_nv", &model->base_nv) || !get_count(of, "bodies", &model->bodies)
      || !get_integer(of, "description", &model->description)
      || !get_integer(of, "version", &model->version))
    return false;
  joints = model->joints.count;
  return fits((model->base_nq == 0 && model->base_nv == 0)
                  || (model->base_nq == 7 && model->base_nv == 6 && model->nq >= 7 && model->nv >= 6
                      && model->ny >= 6),
              "the base")
         && copy_places(config, of, "entries", joints, NOWHERE, model->nq, &model->entries, NULL)
         && copy_places(config, of, "coordinates", joints, 0, model->nv, &model->coordinates, NULL)
         && copy_array(config, of, "angular", 1, joints, &model->angular, NULL)
         && copy_numbers(config, of, "home", model->nq, &model->home)
         && copy_places(config, of, "actuated_joints", -1, 0, joints, &model->actuated_joints,
                        &model->actuated)
         && copy_places(config, of, "independent_joints", -1, 0, joints, &model->independent_joints,
                        &model->independent)
         && copy_places(config, of, "y_coordinates", model->ny, 0, model->nv, &model->y_coordinates,
                        NULL)
         && copy_places(config, of, "link_bodies", model->links.count, NOWHERE, model->bodies,
                        &model->link_bodies, NULL)
         && copy_numbers(config, of, "link_frames", 12 * (int64_t)model->links.count,
                         &model->link_frames);
}

static bool get_seconds(PyObject *of, const char *name, int64_t *value)
{
  double seconds;
  if (!get_number(of, name, &seconds)) return false;
  *value = (int64_t)(seconds * 1e9);
  return true;
}

#define READ_NUMBER(parameter, rule)                                                               \
  if (!get_number(of, #parameter, &s->gate.rule)) return false;
#define READ_TIME(parameter, rule)                                                                 \
  if (!get_seconds(of, #parameter, &s->gate.rule)) return false;

/* Parameters of the node that the machine takes as they are. */
static bool read_parameters(PyObject *of, settings_t *s)
{
  GATE_PARAMETERS(READ_NUMBER, READ_TIME)
  return get_seconds(of, "joint_state_timeout", &s->timeout)
         && get_seconds(of, "stale_hold_time", &s->stale_hold)
         && get_flag(of, "external_wrench", &s->wrenches)
         && get_number(of, "velocity_cutoff", &s->velocity_cutoff)
         && get_number(of, "acceleration_cutoff", &s->acceleration_cutoff)
         && get_number(of, "max_condition_number", &s->max_condition)
         && get_number(of, "observer_gain", &s->observer_gain);
}

static bool read_settings(PyObject *of, config_t *config)
{
  const model_t *model = &config->model;
  settings_t *s = &config->settings;
  PyObject *parameters = PyObject_GetAttrString(of, "parameters");
  const bool plain = parameters != NULL && read_parameters(parameters, s);
  Py_XDECREF(parameters);
  int part_count;
  if (!plain || !get_flag(of, "differentiate", &s->differentiate)
      || !get_flag(of, "zero_on_rejection", &s->zero_on_rejection)
      || !get_flag(of, "commands_from_joints", &s->commands_from_joints)
      || !get_flag(of, "dampers", &s->dampers) || !get_flag(of, "complete", &s->complete)
      || !get_count(of, "acceleration_source", &s->acceleration_source)
      || !get_count(of, "on_stale", &s->on_stale)
      || !get_number(of, "measurement_tolerance", &s->tolerance)
      || !get_number(of, "cannot_give", &s->cannot_give) || !get_number(of, "largest", &s->largest)
      || !get_integer(of, "terms", &s->terms)
      || !copy_numbers(config, of, "offsets", model->joints.count, &s->offsets)
      || !copy_numbers(config, of, "damping", model->actuated, &s->damping)
      || !copy_numbers(config, of, "limits", model->actuated, &s->limits)
      || !copy_places(config, of, "command_order", -1, 0, model->actuated, &s->command_order,
                      &s->command_count)
      || !get_number(of, "precise", &s->closing.precise)
      || !get_number(of, "closed", &s->closing.closed)
      || !get_number(of, "nearby", &s->closing.nearby)
      || !get_count(of, "repeats", &s->closing.repeats)
      || !copy_array(config, of, "parts", sizeof(ptrdiff_t), -1, &s->parts, &part_count))
    return false;
  s->gate.limit = s->limits;
  s->gate.gap = s->timeout;
  s->closing.parts = s->parts;
  s->closing.part_count = (size_t)part_count;
  return true;
}

/* Evaluates a kernel without machine code, in Python. */
static void call_python(void *call)
{
  const PyGILState_STATE state = PyGILState_Ensure();
  PyObject *result = PyObject_CallNoArgs(call);
  if (result == NULL) PyErr_WriteUnraisable(call);
  Py_XDECREF(result);
  PyGILState_Release(state);
}

/* A kernel with its arrays, and how many numbers each has; sizes of -1 are not checked. */
static bool read_kernel(PyObject *kernel, int count, const int64_t *sizes, kernel_t *into)
{
  int64_t address;
  PyObject *arrays = NULL;
  if (!get_integer(kernel, "address", &address)) return false;
  into->code = (void (*)(double *const *))(uintptr_t)address;
  if (address == 0) {
    PyObject *call = PyObject_GetAttrString(kernel, "call");
    if (call == NULL) return false;
    Py_DECREF(call); /* the owner of the configuration keeps it */
    into->evaluate = call_python;
    into->memory = call;
  }
  arrays = PyObject_GetAttrString(kernel, "arrays");
  PyObject *list = arrays == NULL ? NULL : PySequence_Fast(arrays, "arrays are a sequence");
  Py_XDECREF(arrays);
  if (list == NULL) return false;
  into->count = (int)PySequence_Fast_GET_SIZE(list);
  bool good = fits(into->count <= MAX_PORTS && into->count == count, "the number of arrays");
  for (int k = 0; good && k < into->count; k++)
    good = memory_of(PySequence_Fast_GET_ITEM(list, k), sizeof(double), (void **)&into->ports[k],
                     &into->sizes[k])
           && fits(sizes[k] < 0 || into->sizes[k] == (size_t)sizes[k], "the size of an array");
  Py_DECREF(list);
  return good;
}

static bool get_kernel(PyObject *of, const char *name, int count, const int64_t *sizes,
                       kernel_t *into)
{
  PyObject *kernel = PyObject_GetAttrString(of, name);
  if (kernel == NULL) return false;
  const bool good = read_kernel(kernel, count, sizes, into);
  Py_DECREF(kernel);
  return good;
}

/* Calls Python, which the thread of the stream may do; there are robots for which it must. */
static bool call_closer(void *context, const double *position, const double *guess, double *q)
{
  const PyGILState_STATE state = PyGILState_Ensure();
  const closing_t *closing = PyCapsule_GetPointer(PyTuple_GET_ITEM((PyObject *)context, 1), NULL);
  bool closed = false;
  PyObject *closer = PyTuple_GET_ITEM((PyObject *)context, 0);
  PyObject *found = PyObject_CallFunction(
      closer, "y#y#", (const char *)position, (Py_ssize_t)(sizeof(double) * closing->known),
      (const char *)guess, (Py_ssize_t)(sizeof(double) * closing->nq));
  if (found != NULL && PyBytes_Check(found)
      && (size_t)PyBytes_GET_SIZE(found) == sizeof(double) * closing->nq) {
    memcpy(q, PyBytes_AS_STRING(found), sizeof(double) * closing->nq);
    closed = true;
  }
  if (found == NULL) PyErr_Clear();
  Py_XDECREF(found);
  PyGILState_Release(state);
  return closed;
}

static void read_closing(const model_t *model, const kernel_t *kernel, int position, int guess,
                         int q, int health, ptrdiff_t *entries, double *scratch, closing_t *into)
{
  *into = (closing_t){
      .kernel = kernel,
      .position = position < 0 ? NULL : kernel->ports[position],
      .known = position < 0 ? 0 : kernel->sizes[position],
      .entries = entries,
      .guess = kernel->ports[guess],
      .q = kernel->ports[q],
      .nq = (size_t)model->nq,
      .base_nq = (size_t)model->base_nq,
      .health = kernel->ports[health],
      .scratch = scratch,
  };
}

/* Inputs and outputs of the feedforward kernel: position, velocity, acceleration, guess, limit,
 * wrenches if there are any; efforts, q, health. */
static bool read_route_kernel(PyObject *of, config_t *config, route_t *route)
{
  const model_t *model = &config->model;
  const int64_t ny = model->ny, nq = model->nq, actuated = model->actuated;
  const int64_t wrenches[] = {-1,       ny, ny,    nq, actuated, 6 * (int64_t)model->bodies,
                              actuated, nq, HEALTH};
  const int64_t plain[] = {-1, ny, ny, nq, actuated, actuated, nq, HEALTH};
  const int64_t completion[] = {nq, ny, model->nv};
  const int count = route->wrenches ? 9 : 8;
  kernel_t *kernel = &route->kernel;
  ptrdiff_t *entries;
  if (!get_kernel(of, "kernel", count, route->wrenches ? wrenches : plain, kernel)
      || !get_kernel(of, "completion", 3, completion, &route->completion)
      || !copy_array(config, of, "entries", sizeof(ptrdiff_t), route->known, &entries, NULL))
    return false;
  for (int k = 0; k < route->known; k++)
    if (!fits(entries[k] >= 0 && entries[k] < nq, "an entry of q")) return false;
  read_closing(model, kernel, 0, 3, count - 2, count - 1, entries, config->scratch,
               &route->closing);
  route->velocity = kernel->ports[1];
  route->acceleration = kernel->ports[2];
  route->wrench = route->wrenches ? kernel->ports[5] : NULL;
  route->efforts = kernel->ports[count - 3];
  PyObject *closer = PyObject_GetAttrString(of, "closer");
  if (closer == NULL) return false;
  route->by_newton = closer == Py_None;
  bool good =
      fits(model->base_nv + route->known == ny && model->base_nv + route->wanted_count == ny,
           "the joints of a route");
  if (route->by_newton) {
    good = good && fits(route->closing.known == (size_t)route->known, "the positions of a route");
  } else if (good) {
    /* Positions that no kernel takes, for Python. */
    route->closing.position = keep(config, sizeof(double) * (size_t)route->known);
    route->closing.known = (size_t)route->known;
    PyObject *capsule = PyCapsule_New(&route->closing, NULL, NULL);
    route->closer = call_closer;
    route->closer_context = capsule == NULL ? NULL : PyTuple_Pack(2, closer, capsule);
    Py_XDECREF(capsule);
    good = route->closing.position != NULL && route->closer_context != NULL;
  }
  Py_DECREF(closer);
  return good;
}

/* The kernel that closes loops by other measured joints, if there is one. */
static bool read_settling(PyObject *of, config_t *config, route_t *route)
{
  const model_t *model = &config->model;
  PyObject *kernel = PyObject_GetAttrString(of, "settling");
  if (kernel == NULL) return false;
  const bool none = kernel == Py_None;
  const int64_t sizes[] = {-1, model->nq, model->nq, -1};
  const bool good =
      none
      || (copy_places(config, of, "settling_joints", -1, 0, model->joints.count,
                      &route->settling_joints, &route->settling_count)
          && read_kernel(kernel, 4, sizes, &route->settling)
          && fits(route->settling.sizes[0] == (size_t)route->settling_count, "joints that settle"));
  Py_DECREF(kernel);
  return good;
}

static bool read_route(PyObject *of, config_t *config, void *into)
{
  route_t *route = into;
  const model_t *model = &config->model;
  const int joints = model->joints.count;
  if (!copy_mask(config, of, "measured", joints, &route->measured)
      || !copy_mask(config, of, "wanted", joints, &route->wanted)
      || !get_count(of, "acceleration_source", &route->acceleration_source)
      || !get_flag(of, "wrenches", &route->wrenches) || !get_integer(of, "terms", &route->terms)
      || !get_flag(of, "determined", &route->determined)
      || !fits(route->measured != NULL, "a route"))
    return false;
  if (!route->determined) return true;
  if (!get_flag(of, "reference_determined", &route->reference_determined)
      || !copy_places(config, of, "joints", -1, 0, joints, &route->joints, &route->known)
      || !copy_places(config, of, "wanted_joints", -1, 0, joints, &route->wanted_joints,
                      &route->wanted_count)
      || !copy_places(config, of, "seeds", -1, 0, joints, &route->seeds, &route->seed_count)
      || !copy_places(config, of, "followers", -1, 0, model->nq, &route->followers,
                      &route->follower_count)
      || !copy_places(config, of, "redundant", -1, 0, joints, &route->redundant,
                      &route->redundant_count)
      || !copy_numbers(config, of, "scales", route->redundant_count, &route->scales)
      || !read_route_kernel(of, config, route) || !read_settling(of, config, route))
    return false;
  route->chosen = keep(config, (size_t)joints);
  if (route->chosen == NULL) return false;
  for (int k = 0; k < route->known; k++) route->chosen[route->joints[k]] = 1;
  for (int k = 0; k < route->seed_count; k++)
    if (!fits(model->entries[route->seeds[k]] != NOWHERE, "a seed")) return false;
  for (int k = 0; k < route->redundant_count; k++)
    if (!fits(model->entries[route->redundant[k]] != NOWHERE, "a redundant joint")) return false;
  return true;
}

/* Inputs and outputs of the kernel of commands: position, velocity, effort, guess, state, gains,
 * limit, offsets; missed, motors, q, health. */
static bool read_command_route(PyObject *of, config_t *config, void *into)
{
  command_route_t *route = into;
  const model_t *model = &config->model;
  const int joints = model->joints.count;
  const int64_t ny = model->ny, nq = model->nq, nv = model->nv, actuated = model->actuated;
  const int64_t sizes[] = {-1,       ny, nv,           nq, ny + nq + actuated, 2 * nv, actuated,
                           actuated, ny, 3 * actuated, nq, HEALTH + 2};
  ptrdiff_t *entries;
  if (!copy_mask(config, of, "named", joints, &route->named)
      || !fits(route->named != NULL, "a command")
      || !copy_mask(config, of, "measured", joints, &route->measured)
      || !get_count(of, "fields", &route->fields) || !fits(route->fields < 8, "the fields")
      || !get_flag(of, "determined", &route->determined))
    return false;
  if (!route->determined) return true;
  double *gains, *offsets;
  if (!get_flag(of, "moves", &route->moves) || !get_flag(of, "holds", &route->holds)
      || !get_flag(of, "needs_state", &route->needs_state)
      || !get_flag(of, "has_efforts", &route->has_efforts)
      || !copy_places(config, of, "joints", -1, 0, joints, &route->joints, &route->known)
      || !get_kernel(of, "kernel", 12, sizes, &route->kernel))
    return false;
  if (!copy_numbers(config, of, "gains", 2 * nv, &gains)) return false;
  route->gains = gains;
  if (!copy_numbers(config, of, "offsets", actuated, &offsets)) return false;
  route->offsets = offsets;
  if (!copy_array(config, of, "entries", sizeof(ptrdiff_t), route->known, &entries, NULL))
    return false;
  read_closing(model, &route->kernel, 0, 3, 10, 11, entries, config->scratch, &route->closing);
  route->velocity = route->kernel.ports[1];
  route->effort = route->kernel.ports[2];
  route->state = route->kernel.ports[4];
  route->gain = route->kernel.ports[5];
  route->offset = route->kernel.ports[7];
  route->motors = route->kernel.ports[9];
  for (int k = 0; k < route->known; k++)
    if (!fits(entries[k] >= 0 && entries[k] < nq && route->named[route->joints[k]]
                  && model->entries[route->joints[k]] != NOWHERE,
              "a commanded joint"))
      return false;
  return fits(route->closing.known == (size_t)(route->moves ? route->known : 0)
                  && (route->moves || route->known == 0)
                  && model->base_nv + route->known <= (route->moves ? ny : model->base_nv)
                  && (route->needs_state || (route->fields & POSITION_FIELD)),
              "the joints of a command");
}

static bool read_observer(PyObject *of, config_t *config)
{
  const model_t *model = &config->model;
  const int64_t ny = model->ny, nq = model->nq, nv = model->nv;
  const int64_t force[] = {nq, nv, ny}, friction[] = {nq, ny, ny}, momentum[] = {nq, ny, ny, ny};
  const int64_t pose[] = {nq, 16}, jacobian[] = {nq, 6 * ny};
  observer_t *observer = config->observer = keep(config, sizeof *observer);
  double *point;
  if (observer == NULL) return false;
  if (!get_kernel(of, "force", 3, force, &observer->force)
      || !get_kernel(of, "friction", 3, friction, &observer->friction)
      || !get_kernel(of, "momentum", 4, momentum, &observer->momentum)
      || !fits(model->independent + model->base_nv == model->ny, "the independent joints")
      || !get_flag(of, "wrench", &observer->wrench))
    return false;
  if (!observer->wrench) return true;
  if (!copy_numbers(config, of, "point", 3, &point)) return false;
  memcpy(observer->point, point, sizeof observer->point);
  return get_kernel(of, "pose", 2, pose, &observer->pose)
         && get_kernel(of, "jacobian", 2, jacobian, &observer->jacobian);
}

static bool read_hold(PyObject *of, config_t *config)
{
  const int64_t ny = config->model.ny, nq = config->model.nq;
  const int64_t gravity[] = {nq, ny}, efforts[] = {nq, ny, config->model.actuated};
  config->hold = keep(config, sizeof *config->hold);
  if (config->hold == NULL) return false;
  return get_kernel(of, "gravity", 2, gravity, &config->hold->gravity)
         && get_kernel(of, "efforts", 3, efforts, &config->hold->efforts);
}

/* Read an attribute that is a sequence into an array of such items. */
static bool read_items(PyObject *of, const char *name, config_t *config, size_t item, void **into,
                       int *count, bool (*read)(PyObject *, config_t *, void *))
{
  PyObject *found = PyObject_GetAttrString(of, name);
  PyObject *list = found == NULL ? NULL : PySequence_Fast(found, "routes are a sequence");
  Py_XDECREF(found);
  if (list == NULL) return false;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(list);
  char *items = *into = keep(config, (size_t)size * item);
  bool good = items != NULL;
  for (Py_ssize_t k = 0; good && k < size; k++) {
    ++*count; /* before it is read: what was read of it is freed */
    good = read(PySequence_Fast_GET_ITEM(list, k), config, items + (size_t)k * item);
  }
  Py_DECREF(list);
  return good;
}

static bool make_outputs(PyObject *of, config_t *config)
{
  const model_t *model = &config->model;
  outputs_t *outputs = &config->outputs;
  const size_t joints = (size_t)model->joints.count;
  char **names = calloc(joints + 1, sizeof(char *));
  PyObject *frame = PyObject_GetAttrString(of, "wrench_frame");
  const char *frame_id = frame == NULL ? NULL : PyUnicode_AsUTF8(frame);
  bool good = names != NULL && frame_id != NULL;
  size_t count = 0;
  for (int k = 0; good && k < model->actuated; k++)
    names[count++] = model->joints.names[model->actuated_joints[k]];
  const char *const *list = (const char *const *)names;
  good = good && make_joint_state(&outputs->feedforward, list, count, EFFORT_FIELD);
  for (int fields = 1; good && fields < 8; fields++)
    good = make_joint_state(&outputs->motors[fields], list, count, fields);
  for (int k = 0; good && k < 3; k++)
    good = make_array(&outputs->arrays[k], (size_t)config->settings.command_count);
  count = 0;
  for (int k = 0; good && k < model->independent; k++)
    names[count++] = model->joints.names[model->independent_joints[k]];
  good = good && make_joint_state(&outputs->external, list, count, EFFORT_FIELD)
         && make_wrench(&outputs->wrench, frame_id);
  count = 0;
  for (size_t k = 0; good && k < joints; k++)
    if (model->entries[k] != NOWHERE) names[count++] = model->joints.names[k];
  for (int k = 0; good && k < 4; k++)
    good = make_joint_state(&outputs->completed[k], list, count,
                            POSITION_FIELD | (k & 1 ? VELOCITY_FIELD : 0)
                                | (k & 2 ? EFFORT_FIELD : 0));
  free(names);
  Py_XDECREF(frame);
  if (!good && !PyErr_Occurred()) PyErr_NoMemory();
  return good;
}

/* Read an attribute; one that is None only if it has to be there. */
static bool read_part(PyObject *of, const char *name, config_t *config, bool required,
                      bool (*read)(PyObject *, config_t *))
{
  PyObject *found = PyObject_GetAttrString(of, name);
  if (found == NULL) return false;
  const bool good = (!required && found == Py_None) || read(found, config);
  Py_DECREF(found);
  return good;
}

config_t *read_config(PyObject *of)
{
  config_t *config = calloc(1, sizeof *config);
  if (config == NULL) return (config_t *)PyErr_NoMemory();
  config->owner = Py_NewRef(of);
  bool good = read_part(of, "model", config, true, read_model)
              && read_part(of, "settings", config, true, read_settings);
  if (good) {
    const model_t *model = &config->model;
    const size_t joints = (size_t)model->joints.count, nq = (size_t)model->nq;
    /* Masks and places of joints, efforts of two topics, closing, and a Jacobian. */
    const size_t scratch = 4 * joints + 2 * (size_t)model->actuated + 2 * nq + (size_t)model->nv
                           + 8 * (size_t)model->ny + 64;
    config->scratch = keep(config, sizeof(double) * scratch);
    good = config->scratch != NULL;
  }
  good = good
         && read_items(of, "routes", config, sizeof *config->routes, (void **)&config->routes,
                       &config->route_count, read_route)
         && read_items(of, "command_routes", config, sizeof *config->command_routes,
                       (void **)&config->command_routes, &config->command_route_count,
                       read_command_route)
         && read_part(of, "observer", config, false, read_observer)
         && read_part(of, "hold", config, false, read_hold) && make_outputs(of, config);
  if (good) return config;
  if (!PyErr_Occurred()) PyErr_NoMemory();
  release_config(config);
  return NULL;
}

void release_config(config_t *config)
{
  if (config == NULL) return;
  outputs_t *outputs = &config->outputs;
  for (int k = 0; k < config->route_count; k++)
    Py_XDECREF((PyObject *)config->routes[k].closer_context);
  free_names(&config->model.joints);
  free_names(&config->model.links);
  free_template(&outputs->feedforward);
  free_template(&outputs->external);
  free_template(&outputs->wrench);
  for (int k = 0; k < 3; k++) free_template(&outputs->arrays[k]);
  for (int k = 0; k < 4; k++) free_template(&outputs->completed[k]);
  for (int k = 1; k < 8; k++) free_template(&outputs->motors[k]);
  Py_XDECREF((PyObject *)config->owner);
  for (block_t *block = config->blocks, *next; block != NULL; block = next) {
    next = block->next;
    free(block);
  }
  free(config);
}
