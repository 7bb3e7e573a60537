/* The momentum observer as plain C: the stream and Python take it, and exported code has a copy. */
#ifndef RBDA_ROS_OBSERVER_STEP_H
#define RBDA_ROS_OBSERVER_STEP_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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

/* Least squares of J' w = external with the smallest w, by one-sided Jacobi rotations of the columns
 * of J'. J has `rows` rows of `ny` numbers; `A` (rows x ny) is scratch. */
static inline void observer_wrench(const double *J, int rows, int ny, const double *external,
                                   double *A, double *w)
{
  double V[36] = {0};
  memcpy(A, J, sizeof(double) * (size_t)(rows * ny));
  for (int i = 0; i < rows; i++) V[7 * i] = 1.0;
  for (int sweep = 0; sweep < 30; sweep++) {
    bool rotated = false;
    for (int i = 0; i < rows; i++) {
      for (int j = i + 1; j < rows; j++) {
        double *a = A + i * ny, *b = A + j * ny, aa = 0.0, bb = 0.0, ab = 0.0;
        for (int k = 0; k < ny; k++) {
          aa += a[k] * a[k];
          bb += b[k] * b[k];
          ab += a[k] * b[k];
        }
        if (ab == 0.0 || fabs(ab) <= 1e-16 * sqrt(aa * bb)) continue;
        rotated = true;
        const double zeta = (bb - aa) / (2.0 * ab);
        const double t = (zeta >= 0.0 ? 1.0 : -1.0) / (fabs(zeta) + sqrt(1.0 + zeta * zeta));
        const double c = 1.0 / sqrt(1.0 + t * t), sine = c * t;
        for (int k = 0; k < ny; k++) {
          const double x = a[k];
          a[k] = c * x - sine * b[k];
          b[k] = sine * x + c * b[k];
        }
        for (int k = 0; k < rows; k++) {
          const double x = V[6 * k + i];
          V[6 * k + i] = c * x - sine * V[6 * k + j];
          V[6 * k + j] = sine * x + c * V[6 * k + j];
        }
      }
    }
    if (!rotated) break;
  }
  double largest = 0.0, squared[6], along[6];
  for (int i = 0; i < rows; i++) {
    squared[i] = along[i] = 0.0;
    for (int k = 0; k < ny; k++) {
      squared[i] += A[i * ny + k] * A[i * ny + k];
      along[i] += A[i * ny + k] * external[k];
    }
    largest = fmax(largest, squared[i]);
  }
  memset(w, 0, 6 * sizeof(double));
  for (int i = 0; i < rows; i++)
    if (squared[i] > 1e-12 * largest) /* singular values below 1e-6 of the largest are zero */
      for (int k = 0; k < rows; k++) w[k] += V[6 * k + i] * along[i] / squared[i];
}

#endif
