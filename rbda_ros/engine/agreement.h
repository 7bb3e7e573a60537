/* Whether redundant measurements agree: one rule for the stream and for services. */
#ifndef RBDA_ROS_AGREEMENT_H
#define RBDA_ROS_AGREEMENT_H

#include <math.h>

/* How far a measured position is from the one that others lead to; angles are compared up to whole
   turns. `scale` is how fast the joint moves per motion of those, at least 1: a difference is
   judged on the slower side of a gear. */
static inline double disagreement(double measured, double computed, int angular, double scale)
{
  const double apart = measured - computed;
  return fabs(angular ? remainder(apart, 6.283185307179586) : apart) / scale;
}

#endif
