#include "read_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Lists of configuration.h for Python. */

#define NAME(name) #name,
#define TEXT(name, text) text,

static const char *const inputs[] = {INPUTS_LIST(NAME) NULL};
static const char *const outputs[] = {OUTPUTS_LIST(NAME) NULL};
static const char *const rejections[] = {REJECTIONS_LIST(NAME) NULL};
static const char *const acceleration_sources[] = {ACCELERATION_SOURCES_LIST(TEXT) NULL};
static const char *const on_stale_texts[] = {ON_STALE_LIST(TEXT) NULL};

static bool add_list(PyObject *module, const char *name, const char *const *texts)
{
  Py_ssize_t count = 0;
  while (texts[count] != NULL) count++;
  PyObject *list = PyTuple_New(count);
  for (Py_ssize_t k = 0; list != NULL && k < count; k++) {
    PyObject *text = PyUnicode_FromString(texts[k]);
    if (text == NULL)
      Py_CLEAR(list);
    else
      PyTuple_SET_ITEM(list, k, text);
  }
  const bool good = list != NULL && PyModule_AddObjectRef(module, name, list) == 0;
  Py_XDECREF(list);
  return good;
}

bool add_lists(PyObject *module)
{
  return add_list(module, "INPUTS", inputs) && add_list(module, "OUTPUTS", outputs)
         && add_list(module, "REJECTIONS", rejections)
         && add_list(module, "ACCELERATION_SOURCES", acceleration_sources)
         && add_list(module, "ON_STALE", on_stale_texts)
         && PyModule_AddIntMacro(module, POSITION_FIELD) == 0
         && PyModule_AddIntMacro(module, VELOCITY_FIELD) == 0
         && PyModule_AddIntMacro(module, EFFORT_FIELD) == 0
         && PyModule_AddIntMacro(module, MAX_NAMES) == 0
         && PyModule_AddIntMacro(module, NOWHERE) == 0;
}

/* Fields. */

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

/* An attribute, which the object keeps. */
static PyObject *field(PyObject *of, const char *name)
{
  PyObject *found = PyObject_GetAttrString(of, name);
  Py_XDECREF(found);
  return found;
}

static bool get_integer(PyObject *of, const char *name, int64_t *value)
{
  PyObject *found = field(of, name);
  if (found != NULL) *value = PyLong_AsLongLong(found);
  return PyErr_Occurred() == NULL;
}

static bool get_count(PyObject *of, const char *name, int *value)
{
  int64_t wide = 0;
  if (!get_integer(of, name, &wide) || !fits(wide >= 0 && wide < INT32_MAX, name)) return false;
  *value = (int)wide;
  return true;
}

static bool get_flag(PyObject *of, const char *name, bool *value)
{
  PyObject *found = field(of, name);
  if (found != NULL) *value = PyObject_IsTrue(found) > 0;
  return PyErr_Occurred() == NULL;
}

static bool get_number(PyObject *of, const char *name, double *value)
{
  PyObject *found = field(of, name);
  if (found != NULL) *value = PyFloat_AsDouble(found);
  return PyErr_Occurred() == NULL;
}

static bool get_seconds(PyObject *of, const char *name, int64_t *value)
{
  double seconds;
  if (!get_number(of, name, &seconds)) return false;
  *value = (int64_t)(seconds * 1e9);
  return true;
}

static bool get_choice(PyObject *of, const char *name, const char *const *texts, int *value)
{
  PyObject *found = field(of, name);
  if (found == NULL) return false;
  for (*value = 0; texts[*value] != NULL; ++*value)
    if (PyUnicode_CompareWithASCIIString(found, texts[*value]) == 0) return true;
  return fits(false, name);
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
  PyObject *array = field(of, name);
  if (array == NULL || !memory_of(array, item, &at, &found)
      || !fits(size < 0 || found == (size_t)size, name))
    return false;
  void *copied = *(void **)into = keep(config, item * found);
  if (copied != NULL) memcpy(copied, at, item * found);
  if (count != NULL) *count = (int)found;
  return copied != NULL;
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
  PyObject *found = field(of, name);
  *into = NULL;
  if (found == NULL) return false;
  return found == Py_None || copy_array(config, of, name, 1, joints, into, NULL);
}

/* An attribute that is a sequence, as a list or tuple; a new reference. */
static PyObject *get_sequence(PyObject *of, const char *name)
{
  PyObject *found = field(of, name);
  return found == NULL ? NULL : PySequence_Fast(found, name);
}

/* Texts, which the object keeps. */
static bool get_names(config_t *config, PyObject *of, const char *name, name_table_t *table)
{
  PyObject *list = get_sequence(of, name);
  if (list == NULL) return false;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  uint32_t slots = 4;
  while (slots < 2 * (size_t)count && slots < INT32_MAX) slots *= 2;
  bool good = fits(slots < INT32_MAX, name);
  if (good) {
    table->names = keep(config, (size_t)count * sizeof *table->names);
    table->slots = keep(config, slots * sizeof *table->slots);
    table->mask = slots - 1;
    good = table->names != NULL && table->slots != NULL;
  }
  for (; good && table->count < count; table->count += good) {
    const char *text = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(list, table->count));
    table->names[table->count] = text;
    good = text != NULL;
  }
  Py_DECREF(list);
  if (good) fill_slots(table);
  return good;
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

/* A kernel with its arrays, and how many numbers each has; sizes of -1 are not checked. Whoever owns
 * the configuration keeps all of it. */
static bool get_kernel(PyObject *of, const char *name, int count, const int64_t *sizes,
                       kernel_t *into)
{
  int64_t address;
  PyObject *kernel = field(of, name);
  if (kernel == NULL || !get_integer(kernel, "address", &address)) return false;
  into->code = (void (*)(double *const *))(uintptr_t)address;
  into->evaluate = call_python;
  into->memory = field(kernel, "call");
  PyObject *list = into->memory == NULL ? NULL : get_sequence(kernel, "arrays");
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

/* Read an attribute that is a record, or with `optional` None. */
static bool read_part(PyObject *of, const char *name, config_t *config, bool optional,
                      bool (*read)(PyObject *, config_t *))
{
  PyObject *found = field(of, name);
  return found != NULL && ((optional && found == Py_None) || read(found, config));
}

/* Records: the lists of configuration.h, as statements that read a field `of` an object into `record`. */

#define GET(value)                                                                                 \
  _Generic((value), int: get_count, int64_t: get_integer, double: get_number, bool: get_flag)
#define READ_VALUE(type, name)                                                                     \
  if (!GET(record->name)(of, #name, &record->name)) return false
#define READ_NAMES(name)                                                                           \
  if (!get_names(config, of, #name, &record->name)) return false
#define READ_TIME(name)                                                                            \
  if (!get_seconds(of, #name, &record->name)) return false
#define READ_CHOICE(name, texts)                                                                   \
  if (!get_choice(of, #name, texts, &record->name)) return false
#define READ_ARRAY(type, name, size)                                                               \
  if (!copy_array(config, of, #name, sizeof(type), size, &record->name, NULL)) return false
#define READ_PLACES(name, size, least, below)                                                      \
  if (!copy_places(config, of, #name, size, least, below, &record->name, NULL)) return false
#define READ_COUNTED(name, count, below)                                                           \
  if (!copy_places(config, of, #name, -1, 0, below, &record->name, &record->count)) return false
#define READ_MASK(name)                                                                            \
  if (!copy_mask(config, of, #name, model->joints.count, &record->name)) return false
#define READ_KERNEL(name, ...)                                                                     \
  do {                                                                                             \
    const int64_t sizes[] = {__VA_ARGS__};                                                         \
    const int count = (int)(sizeof sizes / sizeof *sizes);                                         \
    if (!get_kernel(of, #name, count, sizes, &record->name)) return false;                         \
  } while (0)
#define READ_GATE_NUMBER(parameter, rule)                                                          \
  if (!get_number(of, #parameter, &record->gate.rule)) return false;
#define READ_GATE_TIME(parameter, rule)                                                            \
  if (!get_seconds(of, #parameter, &record->gate.rule)) return false;

static bool read_model(PyObject *of, config_t *config)
{
  model_t *record = &config->model;
  const model_t *model = record;
  MODEL_FIELDS(READ)
  return fits((model->base_nq == 0 && model->base_nv == 0)
                  || (model->base_nq == 7 && model->base_nv == 6 && model->nq >= 7 && model->nv >= 6
                      && model->ny >= 6),
              "the base");
}

static bool read_parameters(PyObject *of, config_t *config)
{
  settings_t *record = &config->settings;
  PARAMETERS(READ)
  GATE_PARAMETERS(READ_GATE_NUMBER, READ_GATE_TIME)
  return true;
}

static bool read_closing_rules(PyObject *of, config_t *config)
{
  closing_rules_t *record = &config->settings.closing;
  ptrdiff_t *parts;
  int count;
  READ_VALUE(double, precise);
  READ_VALUE(double, closed);
  READ_VALUE(double, nearby);
  READ_VALUE(int, repeats);
  if (!copy_array(config, of, "parts", sizeof *parts, -1, &parts, &count)) return false;
  record->parts = parts;
  record->part_count = (size_t)count;
  return true;
}

static bool read_settings(PyObject *of, config_t *config)
{
  settings_t *record = &config->settings;
  const model_t *model = &config->model;
  if (!read_part(of, "parameters", config, false, read_parameters)
      || !read_part(of, "closing", config, false, read_closing_rules))
    return false;
  SETTINGS_FIELDS(READ)
  record->gate.limit = record->limits;
  record->gate.gap = record->joint_state_timeout;
  return true;
}

/* Calls Python, which the thread of the stream may do; there are robots for which it must. */
static bool call_closer(void *context, const closing_t *closing)
{
  const PyGILState_STATE state = PyGILState_Ensure();
  const Py_ssize_t size = (Py_ssize_t)(sizeof(double) * closing->nq);
  PyObject *found = PyObject_CallFunction(context, "y#y#", (const char *)closing->position,
                                          (Py_ssize_t)(sizeof(double) * closing->known),
                                          (const char *)closing->guess, size);
  const bool closed = found != NULL && PyBytes_Check(found) && PyBytes_GET_SIZE(found) == size;
  if (closed) memcpy(closing->guess, PyBytes_AS_STRING(found), (size_t)size);
  if (found == NULL) PyErr_Clear();
  Py_XDECREF(found);
  PyGILState_Release(state);
  return closed;
}

static bool check_entries(const model_t *model, const ptrdiff_t *entries, int count)
{
  for (int k = 0; k < count; k++)
    if (!fits(entries[k] >= 0 && entries[k] < model->nq, "an entry of q")) return false;
  return true;
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
  const int64_t sizes[] = {-1,       ny, ny,    nq, actuated, 6 * (int64_t)model->bodies,
                           actuated, nq, HEALTH};
  const int64_t plain[] = {-1, ny, ny, nq, actuated, actuated, nq, HEALTH};
  const int count = route->wrenches ? 9 : 8;
  kernel_t *kernel = &route->kernel;
  if (!get_kernel(of, "kernel", count, route->wrenches ? sizes : plain, kernel)
      || !check_entries(model, route->entries, route->known))
    return false;
  read_closing(model, kernel, 0, 3, count - 2, count - 1, route->entries, config->scratch,
               &route->closing);
  route->velocity = kernel->ports[1];
  route->acceleration = kernel->ports[2];
  route->wrench = route->wrenches ? kernel->ports[5] : NULL;
  route->efforts = kernel->ports[count - 3];
  return fits(model->base_nv + route->known == ny && model->base_nv + route->wanted_count == ny,
              "the joints of a route");
}

/* What closes the loops: the kernel itself, or for some robots Python. */
static bool read_closer(PyObject *of, config_t *config, route_t *route)
{
  PyObject *closer = field(of, "closer");
  if (closer == NULL) return false;
  if (closer == Py_None)
    return fits(route->closing.known == (size_t)route->known, "the positions of a route");
  /* Positions that no kernel takes, for Python. */
  route->closing.position = keep(config, sizeof(double) * (size_t)route->known);
  route->closing.known = (size_t)route->known;
  route->closer = call_closer;
  route->closer_context = closer; /* the owner of the configuration keeps it */
  return route->closing.position != NULL;
}

/* The kernel that closes loops by other measured joints, if there is one. */
static bool read_settling(PyObject *of, config_t *config, route_t *route)
{
  const model_t *model = &config->model;
  const int64_t sizes[] = {route->settling_count, model->nq, model->nq, -1};
  PyObject *found = field(of, "settling");
  if (found == NULL) return false;
  return found == Py_None || get_kernel(of, "settling", 4, sizes, &route->settling);
}

static bool read_route(PyObject *of, config_t *config, void *into)
{
  route_t *route = into, *record = route;
  const model_t *model = &config->model;
  ROUTE_KEY_FIELDS(READ)
  if (!fits(route->measured != NULL, "a route")) return false;
  if (!route->determined) return true;
  ROUTE_FIELDS(READ)
  if (!read_route_kernel(of, config, route) || !read_closer(of, config, route)
      || !read_settling(of, config, route))
    return false;
  route->chosen = keep(config, (size_t)model->joints.count);
  if (route->chosen == NULL) return false;
  for (int k = 0; k < route->known; k++) route->chosen[route->joints[k]] = 1;
  for (int k = 0; k < route->seed_count; k++)
    if (!fits(model->entries[route->seeds[k]] != NOWHERE, "a seed")) return false;
  for (int k = 0; k < route->redundant_count; k++)
    if (!fits(model->entries[route->redundant[k]] != NOWHERE, "a redundant joint")) return false;
  return true;
}

static bool read_command_route(PyObject *of, config_t *config, void *into)
{
  command_route_t *route = into, *record = route;
  const model_t *model = &config->model;
  COMMAND_KEY_FIELDS(READ)
  if (!fits(route->named != NULL, "a command") || !fits(route->fields < 8, "the fields"))
    return false;
  if (!route->determined) return true;
  COMMAND_FIELDS(READ)
  if (!check_entries(model, route->entries, route->known)) return false;
  read_closing(model, &route->kernel, 0, 3, 10, 11, route->entries, config->scratch,
               &route->closing);
  route->velocity = route->kernel.ports[1];
  route->effort = route->kernel.ports[2];
  route->state = route->kernel.ports[4];
  route->gain = route->kernel.ports[5];
  route->offset = route->kernel.ports[7];
  route->motors = route->kernel.ports[9];
  for (int k = 0; k < route->known; k++)
    if (!fits(route->named[route->joints[k]] && model->entries[route->joints[k]] != NOWHERE,
              "a commanded joint"))
      return false;
  return fits(route->closing.known == (size_t)(route->moves ? route->known : 0)
                  && (route->moves || route->known == 0)
                  && model->base_nv + route->known <= (route->moves ? model->ny : model->base_nv)
                  && (route->needs_state || (route->fields & POSITION_FIELD)),
              "the joints of a command");
}

static bool read_observer(PyObject *of, config_t *config)
{
  const model_t *model = &config->model;
  observer_t *record = config->observer = keep(config, sizeof *record);
  if (record == NULL) return false;
  OBSERVER_FIELDS(READ)
  if (!fits(model->independent + model->base_nv == model->ny, "the independent joints"))
    return false;
  if (!record->wrench) return true;
  WRENCH_FIELDS(READ)
  return true;
}

static bool read_hold(PyObject *of, config_t *config)
{
  const model_t *model = &config->model;
  hold_t *record = config->hold = keep(config, sizeof *record);
  if (record == NULL) return false;
  HOLD_FIELDS(READ)
  return true;
}

/* Read an attribute that is a sequence into an array of such items. */
static bool read_items(PyObject *of, const char *name, config_t *config, size_t item, void **into,
                       int *count, bool (*read)(PyObject *, config_t *, void *))
{
  PyObject *list = get_sequence(of, name);
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
  const char **list = calloc(joints + 1, sizeof *list);
  PyObject *frame = field(of, "wrench_frame");
  const char *frame_id = frame == NULL ? NULL : PyUnicode_AsUTF8(frame);
  bool good = list != NULL && frame_id != NULL;
  size_t count = 0;
  for (int k = 0; good && k < model->actuated; k++)
    list[count++] = model->joints.names[model->actuated_joints[k]];
  good = good && make_joint_state(&outputs->feedforward, list, count, EFFORT_FIELD);
  for (int fields = 1; good && fields < 8; fields++)
    good = make_joint_state(&outputs->motors[fields], list, count, fields);
  for (int k = 0; good && k < 3; k++)
    good = make_array(&outputs->arrays[k], (size_t)config->settings.command_count);
  count = 0;
  for (int k = 0; good && k < model->independent; k++)
    list[count++] = model->joints.names[model->independent_joints[k]];
  good = good && make_joint_state(&outputs->external, list, count, EFFORT_FIELD)
         && make_wrench(&outputs->wrench, frame_id);
  count = 0;
  for (size_t k = 0; good && k < joints; k++)
    if (model->entries[k] != NOWHERE) list[count++] = model->joints.names[k];
  for (int k = 0; good && k < 4; k++)
    good = make_joint_state(&outputs->completed[k], list, count,
                            POSITION_FIELD | (k & 1 ? VELOCITY_FIELD : 0)
                                | (k & 2 ? EFFORT_FIELD : 0));
  free(list);
  if (!good && !PyErr_Occurred()) PyErr_NoMemory();
  return good;
}

config_t *read_config(PyObject *of)
{
  config_t *config = calloc(1, sizeof *config);
  if (config == NULL) return (config_t *)PyErr_NoMemory();
  config->owner = Py_NewRef(of);
  bool good = read_part(of, "model", config, false, read_model)
              && read_part(of, "settings", config, false, read_settings);
  if (good) {
    const model_t *model = &config->model;
    const size_t joints = (size_t)model->joints.count, nq = (size_t)model->nq;
    /* Four numbers for each joint, efforts of two topics, closing, and a Jacobian. */
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
         && read_part(of, "observer", config, true, read_observer)
         && read_part(of, "hold", config, true, read_hold) && make_outputs(of, config);
  if (good) return config;
  if (!PyErr_Occurred()) PyErr_NoMemory();
  release_config(config);
  return NULL;
}

void release_config(config_t *config)
{
  if (config == NULL) return;
  template_t *outputs = (template_t *)&config->outputs; /* it has nothing but these */
  for (size_t k = 0; k < sizeof config->outputs / sizeof *outputs; k++) free_template(&outputs[k]);
  Py_XDECREF((PyObject *)config->owner);
  for (block_t *block = config->blocks, *next; block != NULL; block = next) {
    next = block->next;
    free(block);
  }
  free(config);
}
