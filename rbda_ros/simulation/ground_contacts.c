/* Points of bodies that may touch the ground, and the impulses there: see ground_contacts.h. */
#include "ground_contacts.h"

#include <math.h>
#include <string.h>

#include "../engine/cones.h"

/* A step removes this share of a penetration, at this velocity at most [m/s]. */
static const double RECOVERY = 0.2, MAX_RECOVERY = 0.3;
static const double TOLERANCE = 1e-9; /* of velocities [m/s] */
static const double UNSOLVED = 1e-3;  /* error of velocities above which a step fails [m/s] */
static const long MAX_ITERATIONS = 1000;

/* One point at one state. */
typedef struct {
  double axes[9]; /* rows: two tangents and the normal, in world axes */
  double r[3];    /* from the origin of its body [m] */
  double bound;   /* the normal velocity after the step is at least minus this [m/s] */
  double now[3];  /* its velocity along the axes at the start [m/s] */
  int body;
} Place;

static double dot(const double *a, const double *b)
{
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Distance of a point from the ground, and the ground's normal there. */
static double ground_distance(const Ground *ground, const double *x, double *normal)
{
  if (ground->heights == NULL) {
    memcpy(normal, ground->normal, 3 * sizeof(double));
    return dot(normal, x) - ground->offset;
  }
  int64_t cell[2], count[2] = {ground->rows, ground->columns};
  double part[2];
  for (int i = 0; i < 2; i++) {
    double at = (x[i] - ground->origin[i]) / ground->spacing[i];
    at = at > 0.0 ? at : 0.0; /* also where it is no number */
    if (at > (double)(count[i] - 1)) at = (double)(count[i] - 1);
    cell[i] = (int64_t)at < count[i] - 2 ? (int64_t)at : count[i] - 2;
    part[i] = at - (double)cell[i];
  }
  const double *low = ground->heights + cell[0] * count[1] + cell[1], *high = low + count[1];
  double along_x[2] = {high[0] - low[0], high[1] - low[1]};
  double along_y[2] = {low[1] - low[0], high[1] - high[0]};
  double slope[2] = {
      ((1.0 - part[1]) * along_x[0] + part[1] * along_x[1]) / ground->spacing[0],
      ((1.0 - part[0]) * along_y[0] + part[0] * along_y[1]) / ground->spacing[1],
  };
  double height = low[0] + part[1] * along_y[0]
                  + part[0] * ((1.0 - part[1]) * along_x[0] + part[1] * along_x[1]);
  double length = sqrt(1.0 + slope[0] * slope[0] + slope[1] * slope[1]);
  normal[0] = -slope[0] / length;
  normal[1] = -slope[1] / length;
  normal[2] = 1.0 / length;
  return (x[2] - height) / length;
}

/* Two tangents to a unit normal, and the normal, as rows. */
static void axes_of(const double *n, double *axes)
{
  int least = fabs(n[0]) <= fabs(n[1]) && fabs(n[0]) <= fabs(n[2]) ? 0
              : fabs(n[1]) <= fabs(n[2])                           ? 1
                                                                   : 2;
  double along[3] = {least == 0, least == 1, least == 2};
  double share = dot(along, n), *t = axes;
  for (int i = 0; i < 3; i++) t[i] = along[i] - share * n[i];
  double length = sqrt(dot(t, t));
  for (int i = 0; i < 3; i++) t[i] /= length;
  cross(n, t, axes + 3);
  memcpy(axes + 6, n, 3 * sizeof(double));
}

/* Velocity of a place along its axes, of those of its body. */
static void along_axes(const Place *place, const double *velocities, double *out)
{
  const double *v = velocities + 6 * place->body;
  double turning[3], x[3];
  cross(v + 3, place->r, turning);
  for (int i = 0; i < 3; i++) x[i] = v[i] + turning[i];
  for (int i = 0; i < 3; i++) out[i] = dot(place->axes + 3 * i, x);
}

/* Add the wrench about the body's origin of an impulse along an axis. */
static void add_wrench(const Place *place, const double *axis, double size, double *wrench)
{
  double moment[3];
  cross(place->r, axis, moment);
  for (int i = 0; i < 3; i++) wrench[i] += size * axis[i], wrench[3 + i] += size * moment[i];
}

static void find_place(const Contacts *contacts, const TouchingBodies *bodies, int c, double h,
                       Place *place)
{
  const ContactPoint *point = &contacts->point[c];
  const double *R = bodies->poses + 12 * point->body, *p = R + 9;
  double normal[3], centre[3];
  for (int i = 0; i < 3; i++) centre[i] = p[i] + dot(R + 3 * i, point->centre);
  double gap = ground_distance(&contacts->ground, centre, normal) - point->radius;
  axes_of(normal, place->axes);
  for (int i = 0; i < 3; i++) place->r[i] = centre[i] - point->radius * normal[i] - p[i];
  place->body = (int)point->body;
  along_axes(place, bodies->now, place->now);
  place->bound = gap > 0.0 ? gap / h : fmax(RECOVERY * gap / h, -MAX_RECOVERY);
  double approach = place->now[2];
  if (point->restitution > 0.0 && approach < 0.0 && gap + h * approach <= 0.0)
    place->bound = fmin(place->bound, point->restitution * approach);
}

int64_t contact_memory(const Contacts *contacts)
{
  int64_t m = 3 * contacts->points, n = 6 * contacts->bodies;
  return (int64_t)cone_numbers((int)m, contacts->points) + m * m + m * n + 2 * m + n
         + contacts->points;
}

bool contact_impulses(const Contacts *contacts, const TouchingBodies *bodies, double h,
                      double *forces, double *impulses, double *work, double *memory)
{
  int count = contacts->points, n = 6 * contacts->bodies, active = 0;
  int number[MAX_POINTS], first[MAX_POINTS + 1];
  bool acts[MAX_POINTS] = {false};
  char kind[MAX_POINTS];
  Place places[MAX_POINTS];
  double *velocities = memory, *Y = velocities + n; /* Y (points, 3, n): velocities per impulse */
  double *A = Y + 3 * count * n, *g = A + 9 * count * count, *x = g + 3 * count;
  double *friction = x + 3 * count, *rest = friction + count;
  for (int c = 0; c < count; c++) find_place(contacts, bodies, c, h, &places[c]);
  memcpy(velocities, bodies->after, n * sizeof(double));
  memset(impulses, 0, n * sizeof(double));
  *work = 0.0;
  /* Points that others push into the ground join them; those that act at the end solve it all. */
  for (bool joined = true; joined;) {
    joined = false;
    for (int c = 0; c < count; c++) {
      double u[3];
      along_axes(&places[c], velocities, u);
      if (acts[c] || u[2] + places[c].bound >= (active ? -TOLERANCE : 0.0)) continue;
      acts[c] = joined = true;
    }
    if (!joined) break;
    /* All that act so far, in their order: results do not depend on when they joined. */
    active = 0;
    for (int c = 0; c < count; c++)
      if (acts[c]) number[active++] = c;
    int m = 3 * active;
    bool many = 2 * n <= m; /* Y has the wrenches of unit impulses on the bodies, then */
    for (int a = 0; a < active; a++) {
      const Place *place = &places[number[a]];
      for (int k = 0; k < 3; k++) {
        double wrench[6] = {0.0}, *y = Y + (3 * a + k) * n;
        const double *axis = place->axes + 3 * k;
        add_wrench(place, axis, 1.0, wrench);
        x[3 * a + k] = h * dot(axis, forces + 3 * number[a]);
        if (many) {
          memset(y, 0, n * sizeof(double));
          memcpy(y + 6 * place->body, wrench, sizeof wrench);
          continue;
        }
        for (int i = 0; i < n; i++) {
          const double *row = bodies->response + (int64_t)i * n + 6 * place->body;
          y[i] = dot(row, wrench) + dot(row + 3, wrench + 3);
        }
        for (int b = 0; b <= a; b++) {
          double u[3];
          along_axes(&places[number[b]], y, u);
          for (int l = 0; l < 3; l++)
            A[(3 * b + l) * m + 3 * a + k] = A[(3 * a + k) * m + 3 * b + l] = u[l];
        }
      }
      along_axes(place, bodies->after, g + 3 * a);
      g[3 * a + 2] += place->bound;
      friction[a] = contacts->point[number[a]].friction;
      kind[a] = 'c';
      first[a] = 3 * a;
    }
    first[active] = m;
    ConeProblem problem = {
        m, active, 1, kind, first, TOLERANCE, MAX_ITERATIONS, many ? n : 0, Y, bodies->response};
    long iterations;
    double missed = solve_cone_problem(&problem, A, g, friction, x, &iterations, rest);
    if (!(missed <= UNSOLVED)) return false;
    memcpy(velocities, bodies->after, n * sizeof(double));
    memset(impulses, 0, n * sizeof(double));
    double *gained = many ? impulses : velocities;
    for (int k = 0; k < m; k++)
      for (int i = 0; i < n; i++) gained[i] += x[k] * Y[k * n + i];
    for (int i = 0; many && i < n; i++)
      for (int j = 0; j < n; j++)
        velocities[i] += bodies->response[(int64_t)i * n + j] * impulses[j];
  }
  memset(impulses, 0, n * sizeof(double));
  memset(forces, 0, 3 * count * sizeof(double));
  for (int a = 0; a < active; a++) {
    const Place *place = &places[number[a]];
    double u[3];
    along_axes(place, velocities, u);
    for (int k = 0; k < 3; k++) {
      double size = x[3 * a + k];
      const double *axis = place->axes + 3 * k;
      add_wrench(place, axis, size, impulses + 6 * place->body);
      for (int i = 0; i < 3; i++) forces[3 * number[a] + i] += size / h * axis[i];
      *work += 0.5 * size * (place->now[k] + u[k]);
    }
  }
  return true;
}
