/* One step of the momentum observer, as plain C: the stream takes it, and exported code has a copy. */
#ifndef RBDA_ROS_OBSERVER_STEP_H
#define RBDA_ROS_OBSERVER_STEP_H

#include <stdbool.h>
#include <stddef.h>

/* With p = H yd and its rate of change without outside forces `drive`, both (ny), the estimate
 * `external` follows the outside force by an implicit step over dt [s]; `integral` and
 * `last_drive` (ny) are from the step before. Where it begins, or after a gap, it goes on where
 * it was. */
static inline void observer_step(size_t ny, const double *p, const double *drive, double gain,
                                 double dt, bool begins, double *integral, double *last_drive,
                                 double *external)
{
  for (size_t k = 0; k < ny; k++) {
    if (begins) {
      integral[k] = p[k] - external[k] / gain;
    } else {
      const double known = integral[k] + 0.5 * dt * (drive[k] + last_drive[k]);
      external[k] = gain * (p[k] - known) / (1.0 + gain * dt);
      integral[k] = known + dt * external[k];
    }
    last_drive[k] = drive[k];
  }
}

#endif
