/* Points of bodies that may touch the ground, and the impulses there. */
#ifndef RBDA_ROS_GROUND_CONTACTS_H
#define RBDA_ROS_GROUND_CONTACTS_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_POINTS = 64, MAX_BODIES = 32 };

/* A sphere on a body: all shapes are some of these. */
typedef struct {
  int64_t body;     /* among the bodies that touch */
  double centre[3]; /* in the body's frame [m] */
  double radius;    /* may be zero [m] */
  double friction;  /* Coulomb's coefficient */
  double restitution;
} ContactPoint;

/* A plane, or heights on a grid over x and y, between which it is bilinear. */
typedef struct {
  double normal[3], offset; /* plane: normal . x = offset */
  const double *heights;    /* (rows, columns) over x and y; NULL: plane */
  int64_t rows, columns;
  double origin[2], spacing[2];
} Ground;

typedef struct {
  int points, bodies;
  ContactPoint point[MAX_POINTS];
  Ground ground;
} Contacts;

/* A robot before contacts act, as the kernel `contact_stage` tells. */
typedef struct {
  const double *poses;       /* (bodies, 12) rotation row by row, origin */
  const double *now, *after; /* (6 bodies,) velocities, linear first; without contacts */
  const double *response;    /* (6 bodies, 6 bodies) velocity per impulse */
} TouchingBodies;

/* Doubles of memory that contact_impulses takes. */
int64_t contact_memory(const Contacts *contacts);

/* Impulses on the bodies (6 bodies,) in a step of length h, by Coulomb's law at its end.

   forces (points, 3): mean forces of the last step on the robot, in world axes, to start from; then
   those of this one [N]. work: of the contacts [J]. False where no impulses were found. */
bool contact_impulses(const Contacts *contacts, const TouchingBodies *bodies, double h,
                      double *forces, double *impulses, double *work, double *memory);

static inline void cross(const double *a, const double *b, double *c)
{
  c[0] = a[1] * b[2] - a[2] * b[1];
  c[1] = a[2] * b[0] - a[0] * b[2];
  c[2] = a[0] * b[1] - a[1] * b[0];
}

#endif
