/* A payload's parameters for exported code: checks of `check_payload` of robot/payloads.py, and
 * parameters as `inertial_parameters` has them. C99 and C++. */
#ifndef RBDA_ROS_PAYLOAD_H
#define RBDA_ROS_PAYLOAD_H

#include "../../engine/loop_rules.h"

/* The ten parameters of a mass [kg] with its centre (3) and moments about it (6, or NULL), into
 * `payload`; 0, and nothing is changed, where no body has these. `place` is then the number that is
 * none, or too large; or -1. */
static inline int payload_parameters(double mass, const double *com, const double *inertia,
                                     double *payload, int *place)
{
  double given[10] = {0.0};
  *place = -1;
  if (mass == 0.0) {
    memcpy(payload, given, sizeof given);
    return 1;
  }
  given[0] = mass;
  memcpy(given + 1, com, 3 * sizeof(double));
  if (inertia != NULL) memcpy(given + 4, inertia, 6 * sizeof(double));
  *place = (int)first_beyond(given, 10, 1e9);
  if (*place >= 0 || mass < 0.0) return 0;
  const double xx = given[4], xy = given[5], xz = given[6];
  const double yy = given[7], yz = given[8], zz = given[9];
  /* Moments that a body has: half the trace less the inertia is positive, pivot by pivot. */
  const double half = 0.5 * (xx + yy + zz), slack = 1e-3 * fabs(half) + 1e-12;
  const double a = half - xx + slack, b = half - yy + slack, c = half - zz + slack;
  const double second = b - xy * xy / a;
  const double coupling = yz + xy * xz / a;
  const double third = c - xz * xz / a - coupling * coupling / second;
  if (!(a > 0.0 && second > 0.0 && third > 0.0)) return 0;
  const double x = com[0], y = com[1], z = com[2];
  payload[0] = mass;
  payload[1] = mass * x;
  payload[2] = mass * y;
  payload[3] = mass * z;
  payload[4] = xx + mass * (y * y + z * z);
  payload[5] = xy - mass * (x * y);
  payload[6] = yy + mass * (x * x + z * z);
  payload[7] = xz - mass * (x * z);
  payload[8] = yz - mass * (y * z);
  payload[9] = zz + mass * (x * x + y * y);
  return 1;
}

#endif
