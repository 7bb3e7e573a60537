/* Angles, quaternions and wrenches: rules of calls and of the stream; exported code has a copy. */
#ifndef RBDA_ROS_GEOMETRY_H
#define RBDA_ROS_GEOMETRY_H

#include <math.h>
#include <stddef.h>

/* How far a measured position is from the one that others lead to; angles are compared up to whole
   turns. `scale` is how fast the joint moves per motion of those, at least 1: a difference is
   judged on the slower side of a gear. */
static inline double disagreement(double measured, double computed, int angular, double scale)
{
  const double apart = measured - computed;
  return fabs(angular ? remainder(apart, 6.283185307179586) : apart) / scale;
}

static inline double quaternion_length(const double *x)
{
  return sqrt(((x[0] * x[0] + x[1] * x[1]) + x[2] * x[2]) + x[3] * x[3]);
}

/* Unit quaternions, which begin at some entries of q; 0 where one is far from it. */
static inline int normalize_quaternions(double *q, const ptrdiff_t *starts, ptrdiff_t count,
                                        double tolerance, double unit)
{
  for (ptrdiff_t k = 0; k < count; k++) {
    double *x = q + starts[k];
    const double length = quaternion_length(x);
    if (!(fabs(length - 1.0) <= tolerance)) return 0;
    if (fabs(length - 1.0) > unit)
      for (int i = 0; i < 4; i++) x[i] /= length;
  }
  return 1;
}

/* A wrench on a link, force then moment, as one on its body, moment then force. `frame` has R by
   rows and p of the link's frame in that of the body. */
static inline void wrench_on_body(const double *frame, const double *wrench, double *on_body)
{
  const double *p = frame + 9;
  double *force = on_body + 3;
  for (int i = 0; i < 3; i++) {
    const double *row = frame + 3 * i;
    force[i] = (row[0] * wrench[0] + row[1] * wrench[1]) + row[2] * wrench[2];
    on_body[i] = (row[0] * wrench[3] + row[1] * wrench[4]) + row[2] * wrench[5];
  }
  on_body[0] += p[1] * force[2] - p[2] * force[1];
  on_body[1] += p[2] * force[0] - p[0] * force[2];
  on_body[2] += p[0] * force[1] - p[1] * force[0];
}

#endif
