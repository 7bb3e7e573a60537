/* The state of the machine: all that it knows from messages, and what it sent. */
#include "machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void forget_times(int64_t *times, int count)
{
  for (int k = 0; k < count; k++) times[k] = NEVER;
}

static void free_layout(layout_t *layout)
{
  free(layout->pattern);
  free(layout->joints);
  free(layout);
}

static void free_layouts(layouts_t *layouts)
{
  while (layouts->count > 0) free_layout(layouts->layouts[--layouts->count]);
}

static void forget_rates(rate_t *rates, int count)
{
  for (int k = 0; k < count; k++) {
    rates[k].rate = NAN;
    rates[k].time = NEVER;
  }
}

void update_rate(rate_t *of, double value, int64_t time, double cutoff, int64_t longest)
{
  const int64_t gap = time - of->time;
  if (gap == 0) return; /* the same once more */
  const bool known = of->time != NEVER && gap > 0 && gap <= longest;
  const double speed = 2.0 * M_PI * cutoff;
  if (known) {
    const double dt = (double)gap * 1e-9, raw = (value - of->value) / dt;
    of->filtered -= expm1(-speed * dt) * (raw - of->filtered);
    /* The filter began at zero: its weights do not yet add up to one. Before one time constant has
     * passed, a single noisy difference would be amplified, and there is no rate. */
    const double elapsed = speed * (double)(time - of->began) * 1e-9;
    of->rate = elapsed >= 1.0 ? of->filtered / -expm1(-elapsed) : NAN;
  } else {
    of->began = time;
    of->filtered = 0.0;
    of->rate = NAN;
  }
  of->value = value;
  of->time = isfinite(value) ? time : NEVER;
}

#define ALLOCATE_ARRAY(type, name, size)                                                           \
  made &= (s->name = calloc((size_t)(size) + 1, sizeof(type))) != NULL
#define FREE_ARRAY(type, name, size) free(s->name)

bool make_state(machine_t *m, config_t *config)
{
  const model_t *model = &config->model;
  state_t *s = calloc(1, sizeof *s);
  if (s == NULL) return false;
  s->joints = model->joints.count;
  s->nq = model->nq;
  s->nv = model->nv;
  s->ny = model->ny;
  s->actuated = model->actuated;
  s->links = model->links.count;
  s->base_nv = model->base_nv;
  bool made = true;
  STATE_ARRAYS(ALLOCATE)
  for (int k = 0; k < GATES; k++) {
    ALLOCATE_ARRAY(double, gates[k].last, s->actuated);
    s->gates[k].count = (size_t)s->actuated;
    s->hold_began[k] = NEVER;
  }
  if (!made) {
    free_state(s);
    return false;
  }
  start_at(s, model->home);
  s->latest_steady = s->settling_failed = NEVER;
  forget_inputs(s);
  m->state = s;
  return true;
}

void free_state(state_t *s)
{
  if (s == NULL) return;
  free_layouts(&s->state_layouts);
  free_layouts(&s->command_layouts);
  STATE_ARRAYS(FREE)
  for (int k = 0; k < GATES; k++) FREE_ARRAY(double, gates[k].last, s->actuated);
  free(s);
}

void start_at(state_t *s, const double *q)
{
  memcpy(s->q, q, sizeof(double) * (size_t)s->nq);
  memcpy(s->command_q, q, sizeof(double) * (size_t)s->nq);
}

void forget_differences(state_t *s)
{
  forget_rates(s->velocity_rates, s->joints);
  forget_rates(s->acceleration_rates, s->joints);
  forget_rates(s->base_rates, s->base_nv);
}

/* All that messages said, but not where the loops were closed, nor what was sent. */
void forget_inputs(state_t *s)
{
  forget_times(s->time, s->joints);
  forget_times(s->effort_time, s->joints);
  forget_times(s->wrench_time, s->links);
  forget_differences(s);
  s->answered = s->completed = s->observing = false;
  s->reference_time = s->base_time = NEVER;
  s->command_steady = s->command_stamp = s->last_command_stamp = NEVER;
  s->state_time = s->observer_time = NEVER;
  s->latest = NEVER;
  s->largest_external = NAN;
  memset(s->external, 0, sizeof(double) * (size_t)s->ny);
  free_layouts(&s->state_layouts);
  free_layouts(&s->command_layouts);
}

bool same_joints(const model_t *one, const model_t *other)
{
  if (one->joints.count != other->joints.count || one->nq != other->nq || one->nv != other->nv
      || one->ny != other->ny || one->actuated != other->actuated
      || one->links.count != other->links.count || one->base_nv != other->base_nv)
    return false;
  for (int k = 0; k < one->joints.count; k++)
    if (strcmp(one->joints.names[k], other->joints.names[k]) != 0) return false;
  for (int k = 0; k < one->links.count; k++)
    if (strcmp(one->links.names[k], other->links.names[k]) != 0) return false;
  return memcmp(one->actuated_joints, other->actuated_joints,
                sizeof(int32_t) * (size_t)one->actuated)
             == 0
         && memcmp(one->entries, other->entries, sizeof(int32_t) * (size_t)one->joints.count) == 0
         && memcmp(one->y_coordinates, other->y_coordinates, sizeof(int32_t) * (size_t)one->ny)
                == 0;
}

/* Layouts: names are matched once for each set of names. */

static uint32_t hash_of(text_t name)
{
  uint32_t hash = 2166136261u; /* FNV-1a */
  for (size_t k = 0; k < name.size; k++) hash = (hash ^ (uint8_t)name.at[k]) * 16777619u;
  return hash;
}

void fill_slots(name_table_t *table)
{
  for (uint32_t k = 0; k <= table->mask; k++) table->slots[k] = NOWHERE;
  for (int32_t k = 0; k < table->count; k++) {
    uint32_t slot = hash_of((text_t){table->names[k], strlen(table->names[k])}) & table->mask;
    while (table->slots[slot] != NOWHERE) slot = (slot + 1) & table->mask;
    table->slots[slot] = k;
  }
}

int find_name(const name_table_t *table, text_t name)
{
  uint32_t slot = hash_of(name) & table->mask;
  for (; table->slots[slot] != NOWHERE; slot = (slot + 1) & table->mask) {
    const char *known = table->names[table->slots[slot]];
    if (strlen(known) == name.size && memcmp(known, name.at, name.size) == 0)
      return table->slots[slot];
  }
  return NOWHERE;
}

int by_number(const void *one, const void *other)
{
  const int32_t a = *(const int32_t *)one, b = *(const int32_t *)other;
  return (a > b) - (a < b);
}

static int by_text(const void *one, const void *other)
{
  const text_t *a = one, *b = other;
  const size_t size = a->size < b->size ? a->size : b->size;
  const int order = memcmp(a->at, b->at, size);
  return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

/* Whether a name stands twice, among all names of the message. */
static bool has_repeated(text_t *names, size_t count)
{
  qsort(names, count, sizeof *names, by_text);
  for (size_t k = 1; k < count; k++)
    if (by_text(&names[k - 1], &names[k]) == 0) return true;
  return false;
}

static layout_t *new_layout(const name_table_t *joints, const uint8_t *data,
                            const joint_state_t *state)
{
  const size_t count = state->name_count;
  layout_t *layout = calloc(1, sizeof *layout);
  text_t *names = malloc(sizeof *names * (count + 1));
  if (layout != NULL) {
    layout->pattern_size = state->names_end - FRAME_ID_AT;
    layout->pattern = malloc(layout->pattern_size + 1);
    layout->joints = malloc(sizeof(int32_t) * (2 * count + 1));
  }
  if (layout == NULL || names == NULL || layout->pattern == NULL || layout->joints == NULL) {
    if (layout != NULL) free_layout(layout);
    free(names);
    return NULL;
  }
  memcpy(layout->pattern, data + FRAME_ID_AT, layout->pattern_size);
  cdr_reader_t reader = begin_names(data, state);
  layout->encoding = data[1];
  layout->count = (int)count;
  layout->own = layout->joints + count;
  for (size_t k = 0; k < count; k++) {
    names[k] = cdr_text(&reader);
    layout->joints[k] = find_name(joints, names[k]);
    if (layout->joints[k] != NOWHERE) layout->own[layout->known++] = layout->joints[k];
  }
  qsort(layout->own, (size_t)layout->known, sizeof *layout->own, by_number);
  layout->repeated = has_repeated(names, count);
  free(names);
  return layout;
}

/* Messages with the same joints of ours can differ in order, frame and other names: they share one
 * stamp. */
static void join_group(const layouts_t *layouts, layout_t *layout)
{
  layout->group = layout->number;
  layout->time = NEVER;
  for (int k = 0; k < layouts->count; k++) {
    const layout_t *other = layouts->layouts[k];
    if (other->known != layout->known
        || memcmp(other->own, layout->own, sizeof(int32_t) * (size_t)layout->known) != 0)
      continue;
    layout->group = other->group;
    layout->time = other->time;
    return;
  }
}

void note_time(layouts_t *layouts, const layout_t *layout, int64_t time)
{
  for (int k = 0; k < layouts->count; k++)
    if (layouts->layouts[k]->group == layout->group) layouts->layouts[k]->time = time;
}

/* Make room: drop the layout that was used least recently, one without joints of ours if there is. */
static void drop_layout(layouts_t *layouts)
{
  int gone = layouts->count - 1;
  while (gone > 0 && layouts->layouts[gone]->known > 0) gone--;
  if (layouts->layouts[gone]->known > 0) gone = layouts->count - 1;
  free_layout(layouts->layouts[gone]);
  layouts->count--;
  memmove(&layouts->layouts[gone], &layouts->layouts[gone + 1],
          sizeof(layout_t *) * (size_t)(layouts->count - gone));
}

/* The layout of a message, whose numbers are read as well; NULL where it is not readable, has too
 * many names (`name_count` tells), or there is no memory. */
static layout_t *find_layout(layouts_t *layouts, const name_table_t *joints, const uint8_t *data,
                             size_t size, joint_state_t *state)
{
  state->name_count = 0;
  for (int k = 0; k < layouts->count; k++) {
    layout_t *layout = layouts->layouts[k];
    if (size < FRAME_ID_AT + layout->pattern_size || data[1] != layout->encoding
        || memcmp(layout->pattern, data + FRAME_ID_AT, layout->pattern_size) != 0)
      continue;
    if (!read_joint_state(data, size, FRAME_ID_AT + layout->pattern_size, state)) return NULL;
    if (k > 0) { /* the next one is most likely like this one */
      memmove(&layouts->layouts[1], &layouts->layouts[0], sizeof(layout_t *) * (size_t)k);
      layouts->layouts[0] = layout;
    }
    return layout;
  }
  if (!read_joint_state(data, size, 0, state) || state->name_count > MAX_NAMES) return NULL;
  layout_t *layout = new_layout(joints, data, state);
  if (layout == NULL) return NULL;
  layout->number = ++layouts->made;
  join_group(layouts, layout);
  if (layouts->count == MAX_LAYOUTS) drop_layout(layouts);
  memmove(&layouts->layouts[1], &layouts->layouts[0], sizeof(layout_t *) * (size_t)layouts->count);
  layouts->layouts[0] = layout;
  layouts->count++;
  return layout;
}

code_t take_joint_state(machine_t *m, layouts_t *layouts, const uint8_t *data, size_t size,
                        moment_t moment, joint_state_t *state, layout_t **layout)
{
  *layout = find_layout(layouts, &m->config->model.joints, data, size, state);
  if (*layout == NULL) return state->name_count > MAX_NAMES ? WRONG_SIZE : UNREADABLE;
  m->foreign = (*layout)->known == 0;
  if (m->foreign) return MISNAMED;
  m->detail.value = (double)(moment.now - state->stamp);
  return is_stale(state->stamp, moment.now, m->config->settings.joint_state_timeout) ? STALE
                                                                                     : ACCEPTED;
}
