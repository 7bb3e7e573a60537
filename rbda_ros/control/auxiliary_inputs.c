/* What efforts need beside joint states: references, the state of the base, wrenches. */
#include "../engine/geometry.h"
#include "machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whether some numbers may be used: finite, and not absurdly large. */
static bool usable(numbers_t numbers, double largest)
{
  for (size_t k = 0; k < numbers.count; k++)
    if (!(fabs(number_at(numbers, k)) <= largest)) return false;
  return true;
}

/* The time of a message: its stamp; or where none is needed and there is none, its arrival. It is
 * rejected where it is too old, too far in the future, or its stamp is older than the time before. */
static code_t check_time(machine_t *m, int64_t stamp, bool needed, int64_t before, moment_t moment,
                         int64_t *time)
{
  const int64_t timeout = m->config->settings.joint_state_timeout;
  *time = stamp != 0 || (needed && timeout != 0) ? stamp : moment.now;
  m->detail.value = (double)(moment.now - *time);
  if (is_stale(*time, moment.now, timeout)) return STALE;
  /* Messages without a stamp follow each other as they arrive, also where the clock is set back. */
  return timeout != 0 && stamp != 0 && *time < before ? OUT_OF_ORDER : ACCEPTED;
}

/* trajectory_msgs/JointTrajectory: the acceleration of its first point. */
code_t feed_reference(machine_t *m, const uint8_t *data, size_t size, moment_t moment)
{
  state_t *s = m->state;
  cdr_reader_t reader = cdr_begin(data, size);
  const header_t header = cdr_header(&reader);
  const uint32_t count = cdr_count(&reader);
  if (reader.failed || count > size) return UNREADABLE;
  if (count > MAX_NAMES) return WRONG_SIZE;
  int32_t *joints = malloc(sizeof *joints * (2 * (size_t)count + 1)), *sorted = joints + count;
  if (joints == NULL) return UNREADABLE;
  code_t code = ACCEPTED;
  for (uint32_t k = 0; k < count; k++)
    joints[k] = sorted[k] = find_name(&m->config->model.joints, cdr_text(&reader));
  const uint32_t points = cdr_count(&reader);
  numbers_t acceleration = {NULL, 0, false};
  if (!reader.failed && points > 0) {
    (void)cdr_numbers(&reader); /* positions */
    (void)cdr_numbers(&reader); /* velocities */
    acceleration = cdr_numbers(&reader);
  }
  m->detail.value = (double)points;
  m->detail.other = (double)acceleration.count;
  qsort(sorted, count, sizeof *sorted, by_number);
  bool repeated = false;
  for (uint32_t k = 1; k < count; k++)
    repeated |= sorted[k] != NOWHERE && sorted[k] == sorted[k - 1];
  if (reader.failed)
    code = UNREADABLE;
  else if (points == 0 || acceleration.count != count)
    code = WRONG_SIZE;
  else if (repeated)
    code = MISNAMED;
  for (uint32_t k = 0; code == ACCEPTED && k < count; k++)
    if (joints[k] != NOWHERE && !isfinite(number_at(acceleration, k))) code = NOT_FINITE;
  int64_t time;
  if (code == ACCEPTED) code = check_time(m, header.stamp, false, s->reference_time, moment, &time);
  if (code == ACCEPTED) {
    memset(s->referenced, 0, (size_t)s->joints);
    for (uint32_t k = 0; k < count; k++) {
      if (joints[k] == NOWHERE) continue;
      s->referenced[joints[k]] = 1;
      s->reference[joints[k]] = number_at(acceleration, k);
    }
    s->reference_time = time; /* a trajectory without a stamp begins now */
  }
  free(joints);
  return code;
}

/* nav_msgs/Odometry. */
code_t feed_base_state(machine_t *m, const uint8_t *data, size_t size, moment_t moment)
{
  state_t *s = m->state;
  const settings_t *settings = &m->config->settings;
  cdr_reader_t reader = cdr_begin(data, size);
  const header_t header = cdr_header(&reader);
  (void)cdr_text(&reader); /* child_frame_id */
  const numbers_t pose = cdr_fixed(&reader, 7);
  (void)cdr_fixed(&reader, 36);
  const numbers_t twist = cdr_fixed(&reader, 6);
  if (reader.failed) return UNREADABLE;
  if (!usable(pose, settings->largest) || !usable(twist, settings->largest)) return NOT_FINITE;
  static const ptrdiff_t quaternion[] = {3};
  double position[7];
  for (size_t k = 0; k < 7; k++) position[k] = number_at(pose, k);
  m->detail.value = quaternion_length(position + 3);
  if (!normalize_quaternions(position, quaternion, 1, 1e-3, 1e-15)) return NOT_A_ROTATION;
  int64_t time;
  const code_t code = check_time(m, header.stamp, true, s->base_time, moment, &time);
  if (code != ACCEPTED) return code;
  memcpy(s->base_position, position, sizeof position);
  s->base_time = time;
  for (int k = 0; k < 6; k++) {
    s->base_twist[k] = number_at(twist, (size_t)k);
    if (s->base_nv > 0 && settings->acceleration_source == ACCELERATION_ESTIMATE)
      update_rate(&s->base_rates[k], s->base_twist[k], s->base_time, settings->acceleration_cutoff,
                  longest_gap(settings));
  }
  return ACCEPTED;
}

/* geometry_msgs/WrenchStamped: force and torque in the frame of a link, at its origin. */
code_t feed_wrench(machine_t *m, const uint8_t *data, size_t size, moment_t moment)
{
  state_t *s = m->state;
  const model_t *model = &m->config->model;
  cdr_reader_t reader = cdr_begin(data, size);
  const header_t header = cdr_header(&reader);
  const numbers_t wrench = cdr_fixed(&reader, 6);
  if (reader.failed) return UNREADABLE;
  const int link = find_name(&model->links, header.frame_id);
  if (link == NOWHERE) return MISNAMED;
  if (!usable(wrench, m->config->settings.largest)) return NOT_FINITE;
  int64_t time;
  const code_t code = check_time(m, header.stamp, false, s->wrench_time[link], moment, &time);
  if (code != ACCEPTED) return code;
  double on_link[6];
  for (size_t k = 0; k < 6; k++) on_link[k] = number_at(wrench, k);
  wrench_on_body(model->link_frames + 12 * link, on_link, s->wrenches + 6 * link);
  s->wrench_time[link] = time;
  return ACCEPTED;
}
