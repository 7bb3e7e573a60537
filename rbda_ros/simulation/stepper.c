/* rbda_ros.simulation.stepper: integrators over the kernel `simulation_stage`, for many robots; with
   contacts over `contact_stage` and `simulation_move`.

   A chart is a choice of independent joints with its kernels. Each robot (row) is in one chart.
   Rows never see each other: results are the same whatever the batch, its blocks and threads. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ground_contacts.h"

typedef void (*Evaluate)(double *const *ports);
typedef void (*EvaluateRows)(double *const *ports, const double *constants, double *memory,
                             int64_t rows);

enum { MAX_CHARTS = 64, MAX_TURNS = 64, PORTS = 14, MAX_BLOCK = 256, HALVINGS = 7 };
enum { EULER, RK4, MIDPOINT };
enum { HEALTH = 4 }; /* of a stage; see simulation_stage.py */

/* Largest residual of a loop after a step [m, sine of an angle]; above it, smaller steps. */
static const double CLOSED = 1e-10;
static const int MIDPOINT_ITERATIONS = 6;
/* Least conditioning of the loops at which a stage is evaluated. Below it the acceleration is that
   of a position a little further along the motion; its error grows with the cube of the distance. */
static const double SINGULAR = 1e-4;

typedef struct {
  Evaluate one;
  EvaluateRows many; /* NULL: row by row */
  const double *constants;
  Py_ssize_t memory;
} Kernel;

typedef struct {
  Kernel stage, move; /* move: with contacts */
  int ny, turns;
  int linear[MAX_TURNS], angular[MAX_TURNS]; /* quaternions: where their velocities are in y */
} Chart;

/* Arrays of `attach`, in its order. */
enum { Q, YD, CHART, LIMIT, WORK, ACTUAL, PIPE, FORCES, CLOCK, ARRAYS };

struct Worker;

typedef struct {
  PyObject_HEAD int nq, ny, na, nw, integrator, iterations, depth, charts;
  double dt, stiction, smooth;
  Chart chart[MAX_CHARTS];
  double *lag;        /* (na,) share of a command that arrives in a step */
  int64_t *delay;     /* (na,) steps */
  Contacts *contacts; /* or NULL */
  double *heights;    /* of the ground, or NULL */
  PyObject *owners;
  Py_ssize_t rows, threads;
  Py_buffer state[ARRAYS];
  double *q, *yd, *limit, *work, *actual, *pipe, *forces; /* the arrays in `state` */
  int64_t *chart_of, *clock;
  struct Worker *worker; /* for one robot; kept from call to call */
  int64_t *stuck;        /* (rows,) of the last run: 0, or one more than the step that failed */
  bool running;
} Stepper;

/* Rows and what they are driven by. */
typedef struct {
  const Stepper *self;
  const double *efforts, *wrenches; /* (steps, rows, na); (rows, nw) or NULL */
  double *out_q, *out_yd;           /* (steps, rows, ...) or NULL */
  int64_t *out_chart;
  Py_ssize_t steps, effort_stride;
  PyObject *change; /* callable(row) -> chart */
} Run;

typedef struct Worker {
  const Run *run;
  Py_ssize_t first, end, memory_size;
  bool python_error, no_memory;
  pthread_t thread;
  bool started;
  /* A block of rows of everything. */
  double *q, *yd, *v, *slip, *shift, *delta, *stepping, *ydd, *next, *health, *u, *rate, *sum_u,
      *sum_a, *from, *start_v, *efforts, *memory, *power, *least, *poses, *now, *after, *response,
      *motion, *forces, *contact_memory, *beside;
  double *allocated;
  bool bad[MAX_BLOCK];
} Worker;

/* Whether there is memory for a kernel; charts that come during a run may take more. */
static bool has_memory(Worker *w, Py_ssize_t size)
{
  if (w->memory != NULL && size <= w->memory_size) return true;
  free(w->memory);
  w->memory = aligned_alloc(64, (size * sizeof(double) + 127) / 64 * 64);
  w->memory_size = w->memory == NULL ? 0 : size;
  return w->memory != NULL;
}

/* Evaluate a kernel for n rows; sizes of its ports, of which there are at most PORTS. */
static void call(Worker *w, const Kernel *kernel, Py_ssize_t n, double **ports, const int *sizes,
                 int count)
{
  if (kernel->many != NULL && n > 1 && has_memory(w, kernel->memory)) {
    kernel->many(ports, kernel->constants, w->memory, n);
    return;
  }
  for (Py_ssize_t k = 0; k < n; k++) {
    double *row[PORTS];
    for (int i = 0; i < count; i++) row[i] = ports[i] + k * sizes[i];
    kernel->one(row);
  }
}

/* Rows whose loops did not close, or whose acceleration is not finite. */
static void mark_bad(Worker *w, Py_ssize_t n, int healths)
{
  int ny = w->run->self->ny;
  for (Py_ssize_t k = 0; k < n; k++) {
    double total = 0.0;
    for (int i = 0; i < ny; i++) total += fabs(w->ydd[k * ny + i]);
    if (!(w->health[healths * k] <= CLOSED) || !(total <= 1e30)) w->bad[k] = true;
  }
}

static bool singular(const double *health)
{
  return !(fmin(health[1], health[3]) >= SINGULAR);
}

/* Evaluate a stage of row k where no y determines the loops: at a closed position nearby, to which
   the row's own velocities lead. Results stay as they are if there is none. */
static void evaluate_beside(Worker *w, const Chart *chart, double **ports, const int *sizes,
                            int count, Py_ssize_t k)
{
  const Stepper *s = w->run->self;
  int nq = s->nq, ny = s->ny, last = count - 3; /* ydd, next position, health */
  double *way = w->beside, *rest = way + ny, *q = rest + ny, *ydd = q + nq, *next = ydd + ny;
  double still[3] = {0.0}, health[HEALTH], *row[PORTS], *moving[PORTS];
  for (int i = 0; i < count; i++) row[i] = moving[i] = ports[i] + k * sizes[i];
  const double *v = row[2], *delta = row[6];
  for (double time = s->dt / 16.0; time <= 2.0 * s->dt; time *= 2.0) {
    for (int i = 0; i < ny; i++) way[i] = time * v[i], rest[i] = delta[i] - way[i];
    still[1] = row[7][1], still[2] = row[7][2];
    moving[0] = row[1], moving[5] = moving[6] = way, moving[7] = still;
    moving[last] = ydd, moving[last + 1] = q, moving[last + 2] = health;
    chart->stage.one(moving);
    if (!(health[0] <= CLOSED)) continue;
    moving[0] = row[0], moving[1] = q, moving[5] = row[5], moving[6] = rest, moving[7] = row[7];
    moving[last + 1] = next;
    chart->stage.one(moving);
    moving[1] = row[1];
    if (!(health[0] <= CLOSED) || singular(health)) continue;
    memcpy(row[last], ydd, ny * sizeof(double));
    memcpy(row[last + 1], next, nq * sizeof(double));
    memcpy(row[last + 2], health, sizeof health);
    return;
  }
}

static void evaluate(Worker *w, const Chart *chart, Py_ssize_t n, double *from, double *v,
                     double *efforts, double *wrenches)
{
  const Stepper *s = w->run->self;
  double *ports[PORTS] = {from, w->q, v, w->slip, efforts, w->shift, w->delta, w->stepping};
  int sizes[PORTS] = {s->nq, s->nq, s->ny, s->ny, s->na, s->ny, s->ny, 3}, p = 8;
  if (s->nw) ports[p] = wrenches, sizes[p++] = s->nw;
  ports[p] = w->ydd, sizes[p++] = s->ny;
  ports[p] = w->next, sizes[p++] = s->nq;
  ports[p] = w->health, sizes[p++] = HEALTH;
  call(w, &chart->stage, n, ports, sizes, p);
  for (Py_ssize_t k = 0; k < n; k++)
    if (singular(w->health + HEALTH * k)) evaluate_beside(w, chart, ports, sizes, p, k);
  mark_bad(w, n, HEALTH);
}

static void set_stepping(Worker *w, Py_ssize_t n, double gain, double h, double stiction)
{
  for (Py_ssize_t k = 0; k < n; k++) {
    w->stepping[3 * k] = gain;
    w->stepping[3 * k + 1] = h;
    w->stepping[3 * k + 2] = stiction;
  }
}

/* Rates of the displacement u from the origin, from velocities v in axes that turned with u. */
static void rates(const Chart *s, const double *u, const double *v, double *rate)
{
  memcpy(rate, v, s->ny * sizeof(double));
  for (int t = 0; t < s->turns; t++) {
    const double *a = u + s->angular[t], *w = v + s->angular[t];
    double once[3], twice[3];
    cross(a, w, once);
    cross(a, once, twice);
    for (int i = 0; i < 3; i++) rate[s->angular[t] + i] = w[i] + 0.5 * once[i] + twice[i] / 12.0;
    if (s->linear[t] < 0) continue;
    const double *p = v + s->linear[t], x = a[0] * a[0] + a[1] * a[1] + a[2] * a[2];
    cross(a, p, once);
    cross(a, once, twice);
    double sine = 1.0 - x / 6.0 * (1.0 - x / 20.0 * (1.0 - x / 42.0));
    double versine = 0.5 - x / 24.0 * (1.0 - x / 30.0 * (1.0 - x / 56.0));
    for (int i = 0; i < 3; i++) rate[s->linear[t] + i] = p[i] + sine * once[i] + versine * twice[i];
  }
}

/* h w x v: the difference that turning axes make to linear velocities v of free bodies in a step. */
static void carried(const Chart *s, double h, const double *v, double *gain)
{
  memset(gain, 0, s->ny * sizeof(double));
  for (int t = 0; t < s->turns; t++) {
    if (s->linear[t] < 0) continue;
    cross(v + s->angular[t], v + s->linear[t], gain + s->linear[t]);
    for (int i = 0; i < 3; i++) gain[s->linear[t] + i] *= h;
  }
}

/* Turn linear velocities of free bodies from the axes at the start of a step to those at its end. */
static void turn_axes(const Chart *s, double h, double *v)
{
  for (int t = 0; t < s->turns; t++) {
    if (s->linear[t] < 0) continue;
    const double *w = v + s->angular[t];
    double a[3] = {-h * w[0], -h * w[1], -h * w[2]}, *p = v + s->linear[t], once[3], twice[3];
    double x = a[0] * a[0] + a[1] * a[1] + a[2] * a[2], angle = sqrt(x);
    double sine = angle > 1e-4 ? sin(angle) / angle : 1.0 - x / 6.0;
    double versine = angle > 1e-4 ? (1.0 - cos(angle)) / x : 0.5 - x / 24.0;
    cross(a, p, once);
    cross(a, once, twice);
    for (int i = 0; i < 3; i++) p[i] += sine * once[i] + versine * twice[i];
  }
}

static void euler(Worker *w, const Chart *chart, Py_ssize_t n, double h, double *e, double *wrench)
{
  const Stepper *s = w->run->self;
  Py_ssize_t count = n * s->ny;
  memcpy(w->slip, w->yd, count * sizeof(double));
  for (Py_ssize_t k = 0; k < n; k++) carried(chart, h, w->yd + k * s->ny, w->u + k * s->ny);
  for (Py_ssize_t i = 0; i < count; i++) w->shift[i] = w->delta[i] = h * (w->yd[i] + w->u[i]);
  set_stepping(w, n, h * h, h, s->stiction);
  for (int round = 0; round < s->iterations; round++) {
    if (round > 0)
      for (Py_ssize_t i = 0; i < count; i++) w->slip[i] = w->yd[i] + h * w->ydd[i];
    evaluate(w, chart, n, w->q, w->yd, e, wrench);
    if (round == 0)
      for (Py_ssize_t k = 0; k < n; k++) w->least[k] = w->health[HEALTH * k + 1];
  }
  for (Py_ssize_t k = 0; k < n; k++) w->power[k] = h * w->health[HEALTH * k + 2];
  for (Py_ssize_t i = 0; i < count; i++) w->yd[i] += w->u[i] + h * w->ydd[i];
  for (Py_ssize_t k = 0; k < n; k++) turn_axes(chart, h, w->yd + k * s->ny);
  memcpy(w->q, w->next, n * s->nq * sizeof(double));
}

/* Begin a step of which every stage leads from its start. */
static void begin_stages(Worker *w, Py_ssize_t n)
{
  const Stepper *s = w->run->self;
  Py_ssize_t count = n * s->ny;
  memcpy(w->from, w->q, n * s->nq * sizeof(double));
  memcpy(w->start_v, w->yd, count * sizeof(double));
  memcpy(w->v, w->yd, count * sizeof(double));
  for (Py_ssize_t i = 0; i < count; i++) w->u[i] = w->sum_u[i] = w->sum_a[i] = 0.0;
  for (Py_ssize_t k = 0; k < n; k++) w->power[k] = 0.0;
  set_stepping(w, n, 0.0, 0.0, s->smooth);
}

static void find_rates(Worker *w, const Chart *chart, Py_ssize_t n)
{
  for (Py_ssize_t k = 0, ny = chart->ny; k < n; k++)
    rates(chart, w->u + k * ny, w->v + k * ny, w->rate + k * ny);
}

/* Evaluate a stage, and move from u to `shift`. */
static void take_stage(Worker *w, const Chart *chart, Py_ssize_t n, bool first, double *e,
                       double *wrench)
{
  const Stepper *s = w->run->self;
  Py_ssize_t count = n * s->ny;
  for (Py_ssize_t i = 0; i < count; i++) w->delta[i] = w->shift[i] - w->u[i];
  memcpy(w->slip, w->v, count * sizeof(double));
  evaluate(w, chart, n, w->from, w->v, e, wrench);
  for (Py_ssize_t k = 0; first && k < n; k++) w->least[k] = w->health[HEALTH * k + 1];
  memcpy(w->u, w->shift, count * sizeof(double));
  memcpy(w->q, w->next, n * s->nq * sizeof(double));
}

static void rk4(Worker *w, const Chart *chart, Py_ssize_t n, double h, double *e, double *wrench)
{
  static const double weight[4] = {1.0, 2.0, 2.0, 1.0}, part[4] = {0.5, 0.5, 1.0, 0.0};
  Py_ssize_t count = n * chart->ny;
  begin_stages(w, n);
  for (int stage = 0; stage < 4; stage++) {
    find_rates(w, chart, n);
    for (Py_ssize_t i = 0; i < count; i++) {
      w->sum_u[i] += weight[stage] * w->rate[i];
      w->shift[i] = stage < 3 ? h * part[stage] * w->rate[i] : h / 6.0 * w->sum_u[i];
    }
    take_stage(w, chart, n, stage == 0, e, wrench);
    for (Py_ssize_t i = 0; i < count; i++) {
      w->sum_a[i] += weight[stage] * w->ydd[i];
      w->v[i] = w->start_v[i] + h * part[stage] * w->ydd[i];
    }
    for (Py_ssize_t k = 0; k < n; k++)
      w->power[k] += h / 6.0 * weight[stage] * w->health[HEALTH * k + 2];
  }
  for (Py_ssize_t i = 0; i < count; i++) w->yd[i] = w->start_v[i] + h / 6.0 * w->sum_a[i];
}

/* Implicit midpoint by fixed-point iteration: symmetric in time, so energy does not drift. */
static void midpoint(Worker *w, const Chart *chart, Py_ssize_t n, double h, double *e,
                     double *wrench)
{
  Py_ssize_t count = n * chart->ny;
  begin_stages(w, n);
  for (int round = 0; round <= MIDPOINT_ITERATIONS; round++) {
    double way = round == MIDPOINT_ITERATIONS ? h : 0.5 * h;
    find_rates(w, chart, n);
    for (Py_ssize_t i = 0; i < count; i++) w->shift[i] = way * w->rate[i];
    take_stage(w, chart, n, round == 0, e, wrench);
    for (Py_ssize_t i = 0; i < count; i++) w->v[i] = w->start_v[i] + 0.5 * h * w->ydd[i];
  }
  for (Py_ssize_t k = 0; k < n; k++) w->power[k] = h * w->health[HEALTH * k + 2];
  for (Py_ssize_t i = 0; i < count; i++) w->yd[i] = w->start_v[i] + h * w->ydd[i];
}

/* As `euler`, where bodies may touch the ground. */
static void euler_in_contact(Worker *w, const Chart *chart, Py_ssize_t n, double h, double *e,
                             double *wrench)
{
  const Stepper *s = w->run->self;
  int ny = s->ny, b = s->contacts->bodies, points = 3 * s->contacts->points;
  memcpy(w->slip, w->yd, n * ny * sizeof(double));
  memcpy(w->start_v, w->yd, n * ny * sizeof(double));
  for (Py_ssize_t k = 0; k < n; k++) carried(chart, h, w->yd + k * ny, w->u + k * ny);
  set_stepping(w, n, 0.0, h, s->stiction);
  for (int round = 0; round < s->iterations; round++) {
    double *ports[PORTS] = {w->q, w->start_v, w->slip, e, w->u, w->stepping};
    int sizes[PORTS] = {s->nq, ny, ny, s->na, ny, 3}, p = 6;
    if (s->nw) ports[p] = wrench, sizes[p++] = s->nw;
    double *outputs[] = {w->ydd, w->poses, w->now, w->after, w->response, w->motion, w->power};
    int size[] = {ny, 12 * b, 6 * b, 6 * b, 36 * b * b, 6 * b * ny, 1};
    for (int i = 0; i < 7; i++) ports[p] = outputs[i], sizes[p++] = size[i];
    call(w, &chart->stage, n, ports, sizes, p);
    for (Py_ssize_t k = 0; k < n; k++) {
      TouchingBodies bodies = {w->poses + k * size[1], w->now + k * size[2], w->after + k * size[3],
                               w->response + k * size[4]};
      double impulses[6 * MAX_BODIES], work = 0.0, *yd = w->yd + k * ny;
      if (!contact_impulses(s->contacts, &bodies, h, w->forces + k * points, impulses, &work,
                            w->contact_memory))
        w->bad[k] = true;
      for (int i = 0; i < ny; i++) {
        const double *of_y = w->motion + k * size[5] + i * 6 * b;
        double sum = w->start_v[k * ny + i] + w->u[k * ny + i] + h * w->ydd[k * ny + i];
        for (int j = 0; j < 6 * b; j++) sum += of_y[j] * impulses[j];
        yd[i] = w->slip[k * ny + i] = sum;
      }
      w->power[k] = h * w->power[k] + work;
    }
  }
  for (Py_ssize_t i = 0; i < n * ny; i++) w->shift[i] = h * w->yd[i];
  double *ports[] = {w->q, w->shift, w->next, w->health};
  call(w, &chart->move, n, ports, (const int[]){s->nq, ny, s->nq, 2}, 4);
  for (Py_ssize_t k = 0; k < n; k++) turn_axes(chart, h, w->yd + k * ny);
  memcpy(w->ydd, w->yd, n * ny * sizeof(double));
  mark_bad(w, n, 2);
  for (Py_ssize_t k = 0; k < n; k++) w->least[k] = w->health[2 * k + 1];
  memcpy(w->q, w->next, n * s->nq * sizeof(double));
}

/* One step of rows that are in one chart; w->bad has those for which it failed. */
static void take_step(Worker *w, Py_ssize_t first, Py_ssize_t n, double h, double *efforts)
{
  const Run *run = w->run;
  const Stepper *s = run->self;
  const Chart *chart = &s->chart[s->chart_of[first]];
  double *wrench = s->nw ? (double *)run->wrenches + first * s->nw : NULL;
  for (Py_ssize_t k = 0; k < n; k++) w->bad[k] = false;
  memcpy(w->q, s->q + first * s->nq, n * s->nq * sizeof(double));
  memcpy(w->yd, s->yd + first * s->ny, n * s->ny * sizeof(double));
  Py_ssize_t points = s->contacts == NULL ? 0 : 3 * s->contacts->points;
  if (points) memcpy(w->forces, s->forces + first * points, n * points * sizeof(double));
  if (s->contacts != NULL)
    euler_in_contact(w, chart, n, h, efforts, wrench);
  else if (s->integrator == EULER)
    euler(w, chart, n, h, efforts, wrench);
  else if (s->integrator == RK4)
    rk4(w, chart, n, h, efforts, wrench);
  else
    midpoint(w, chart, n, h, efforts, wrench);
  for (Py_ssize_t k = 0; k < n; k++) {
    if (w->bad[k]) continue;
    memcpy(s->q + (first + k) * s->nq, w->q + k * s->nq, s->nq * sizeof(double));
    memcpy(s->yd + (first + k) * s->ny, w->yd + k * s->ny, s->ny * sizeof(double));
    s->work[first + k] += w->power[k];
    if (points)
      memcpy(s->forces + (first + k) * points, w->forces + k * points, points * sizeof(double));
  }
}

/* Have Python choose other independent joints for a row; false with an exception. */
static bool change_chart(Worker *w, Py_ssize_t row)
{
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject *nothing = PyObject_CallFunction(w->run->change, "n", row);
  Py_XDECREF(nothing);
  if (nothing == NULL) w->python_error = true;
  PyGILState_Release(state);
  return nothing != NULL;
}

/* Repeat a failed step of a row in smaller parts, then with other independent joints. If that fails
   too, the row stays where it is for the rest of the run. False with an exception. */
static bool step_carefully(Worker *w, Py_ssize_t row, Py_ssize_t step, double *efforts)
{
  const Run *run = w->run;
  const Stepper *s = run->self;
  for (int other = 0; other < 2; other++) {
    int64_t parts = 0, of = 1;
    for (int halvings = 0; halvings <= HALVINGS; halvings++, parts *= 2, of *= 2) {
      while (parts < of) {
        take_step(w, row, 1, s->dt / (double)of, efforts);
        if (w->bad[0]) break;
        parts++;
        if (w->least[0] < s->limit[row] && !change_chart(w, row)) return false;
      }
      if (parts == of) return true;
    }
    if (!change_chart(w, row)) return false;
  }
  s->stuck[row] = step + 1;
  s->clock[row]--;
  return true;
}

/* The efforts of a row's motors at this step: commands after delay and lag. */
static void drive(const Run *run, Py_ssize_t row, Py_ssize_t step, double *efforts)
{
  const Stepper *s = run->self;
  const double *command = run->efforts + step * run->effort_stride + row * s->na;
  double *actual = s->actual + row * s->na, *pipe = s->pipe + row * s->na * s->depth;
  int64_t now = s->clock[row] % s->depth;
  memcpy(pipe + now * s->na, command, s->na * sizeof(double));
  for (int a = 0; a < s->na; a++) {
    double delayed = pipe[(now + s->depth - s->delay[a]) % s->depth * s->na + a];
    actual[a] = s->lag[a] == 1.0 ? delayed : actual[a] + s->lag[a] * (delayed - actual[a]);
  }
  memcpy(efforts, actual, s->na * sizeof(double));
  s->clock[row]++;
}

static bool step_block(Worker *w, Py_ssize_t first, Py_ssize_t end, Py_ssize_t step)
{
  const Run *run = w->run;
  const Stepper *s = run->self;
  for (Py_ssize_t row = first; row < end; row++)
    if (!s->stuck[row]) drive(run, row, step, w->efforts + (row - first) * s->na);
  for (Py_ssize_t row = first; row < end;) {
    Py_ssize_t n = 1;
    if (s->stuck[row]) {
      row++;
      continue;
    }
    while (row + n < end && s->chart_of[row + n] == s->chart_of[row] && !s->stuck[row + n]) n++;
    double *efforts = w->efforts + (row - first) * s->na;
    take_step(w, row, n, s->dt, efforts);
    bool good[MAX_BLOCK];
    for (Py_ssize_t k = 0; k < n; k++) {
      good[k] = !w->bad[k];
      if (good[k] && w->least[k] < s->limit[row + k] && !change_chart(w, row + k)) return false;
    }
    for (Py_ssize_t k = 0; k < n; k++)
      if (!good[k] && !step_carefully(w, row + k, step, efforts + k * s->na)) return false;
    row += n;
  }
  for (Py_ssize_t row = first; run->out_q != NULL && row < end; row++) {
    Py_ssize_t at = step * s->rows + row;
    memcpy(run->out_q + at * s->nq, s->q + row * s->nq, s->nq * sizeof(double));
    memcpy(run->out_yd + at * s->ny, s->yd + row * s->ny, s->ny * sizeof(double));
    run->out_chart[at] = s->chart_of[row];
  }
  return true;
}

static bool allocate(Worker *w, Py_ssize_t block)
{
  const Stepper *s = w->run->self;
  Py_ssize_t all = s->nq + s->ny + s->na + 8;
  Py_ssize_t each = (block * all + 7) / 8 * 8;
  double **arrays[] = {&w->q,       &w->yd,       &w->v,     &w->slip,  &w->shift,
                       &w->delta,   &w->stepping, &w->ydd,   &w->next,  &w->health,
                       &w->u,       &w->rate,     &w->sum_u, &w->sum_a, &w->from,
                       &w->start_v, &w->efforts,  &w->power, &w->least};
  Py_ssize_t count = sizeof arrays / sizeof *arrays;
  Py_ssize_t b = 0, points = 0, for_contacts = 0;
  if (s->contacts != NULL) {
    b = s->contacts->bodies, points = s->contacts->points;
    for_contacts = contact_memory(s->contacts) + 8;
  }
  double **more[] = {&w->poses, &w->now, &w->after, &w->response, &w->motion, &w->forces};
  Py_ssize_t sizes[] = {12 * b, 6 * b, 6 * b, 36 * b * b, 6 * b * s->ny, 3 * points}, large = 0;
  for (int i = 0; i < 6; i++) large += (block * sizes[i] + 7) / 8 * 8;
  Py_ssize_t beside = 2 * s->nq + 3 * s->ny + 8;
  w->allocated = calloc(each * count + large + for_contacts + beside + 16, sizeof(double));
  if (w->allocated == NULL) return false;
  double *at = (double *)(((uintptr_t)w->allocated + 63) / 64 * 64);
  for (Py_ssize_t i = 0; i < count; i++, at += each) *arrays[i] = at;
  for (int i = 0; i < 6; i++) *more[i] = at, at += (block * sizes[i] + 7) / 8 * 8;
  w->contact_memory = at;
  w->beside = at + for_contacts;
  return true;
}

static void release(Worker *w)
{
  free(w->allocated);
  free(w->memory);
  w->allocated = w->memory = NULL;
}

static void *work_on(void *argument)
{
  Worker *w = argument;
  const Run *run = w->run;
  Py_ssize_t block = w->end - w->first < MAX_BLOCK ? w->end - w->first : MAX_BLOCK;
  if (w->allocated == NULL && !allocate(w, block)) {
    w->no_memory = true;
    return NULL;
  }
  bool good = true;
  for (Py_ssize_t first = w->first; good && first < w->end; first += block) {
    Py_ssize_t end = first + block < w->end ? first + block : w->end;
    for (Py_ssize_t step = 0; good && step < run->steps; step++)
      good = step_block(w, first, end, step);
  }
  return NULL;
}

/* The numbers of an array; NULL for None. False with an exception. */
static bool numbers(PyObject *object, Py_ssize_t count, Py_buffer *view, void **data)
{
  *data = NULL;
  if (object == Py_None) return true;
  if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS) < 0) return false;
  *data = view->buf;
  if (view->len == count * 8) return true;
  PyErr_Format(PyExc_ValueError, "an array has %zd bytes, not %zd", view->len, count * 8);
  return false;
}

/* Contacts of (bodies, points, bodies of points, (points, 6) centres, radii, friction and
   restitution, ground (4,), heights or None, their rows, their columns). False with an exception. */
static bool read_contacts(Stepper *s, PyObject *given)
{
  int bodies, points;
  Py_ssize_t rows, columns;
  PyObject *objects[4];
  if (!PyArg_ParseTuple(given, "iiOOOOnn", &bodies, &points, &objects[0], &objects[1], &objects[2],
                        &objects[3], &rows, &columns))
    return false;
  if (bodies < 1 || bodies > MAX_BODIES || points < 1 || points > MAX_POINTS) {
    PyErr_Format(PyExc_ValueError, "%d bodies and %d points of contact; at most %d and %d", bodies,
                 points, MAX_BODIES, MAX_POINTS);
    return false;
  }
  Py_ssize_t sizes[] = {points, 6 * points, 4, rows * columns};
  Py_buffer views[4] = {{0}};
  void *data[4];
  bool good = true;
  for (int i = 0; good && i < 4; i++) good = numbers(objects[i], sizes[i], &views[i], &data[i]);
  s->contacts = good ? PyMem_Calloc(1, sizeof *s->contacts) : NULL;
  if (s->contacts != NULL) {
    const int64_t *body = data[0];
    const double *values = data[1], *ground = data[2];
    Contacts *contacts = s->contacts;
    contacts->bodies = bodies, contacts->points = points;
    for (int c = 0; c < points; c++, values += 6) {
      ContactPoint *point = &contacts->point[c];
      point->body = body[c];
      memcpy(point->centre, values, 3 * sizeof(double));
      point->radius = values[3], point->friction = values[4], point->restitution = values[5];
    }
    if (data[3] == NULL) {
      memcpy(contacts->ground.normal, ground, 3 * sizeof(double));
      contacts->ground.offset = ground[3];
    } else if ((s->heights = PyMem_Calloc(rows * columns, sizeof(double))) != NULL) {
      memcpy(s->heights, data[3], rows * columns * sizeof(double));
      contacts->ground.heights = s->heights;
      contacts->ground.rows = rows, contacts->ground.columns = columns;
      memcpy(contacts->ground.origin, ground, 2 * sizeof(double));
      memcpy(contacts->ground.spacing, ground + 2, 2 * sizeof(double));
    } else {
      good = false;
    }
  }
  for (int i = 0; i < 4; i++)
    if (views[i].obj != NULL) PyBuffer_Release(&views[i]);
  if ((s->contacts == NULL || !good) && !PyErr_Occurred()) PyErr_NoMemory();
  return s->contacts != NULL && good;
}

static PyObject *stepper_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
  (void)keywords;
  int nq, ny, na, nw, integrator, iterations;
  double dt, stiction, smooth;
  PyObject *lag, *delay, *contacts;
  if (!PyArg_ParseTuple(arguments, "iiiiiidddO!O!O:Stepper", &nq, &ny, &na, &nw, &integrator,
                        &iterations, &dt, &stiction, &smooth, &PyTuple_Type, &lag, &PyTuple_Type,
                        &delay, &contacts))
    return NULL;
  if (PyTuple_GET_SIZE(lag) != na || PyTuple_GET_SIZE(delay) != na)
    return PyErr_Format(PyExc_ValueError, "sizes do not fit");
  Stepper *s = (Stepper *)type->tp_alloc(type, 0);
  if (s == NULL) return NULL;
  s->nq = nq, s->ny = ny, s->na = na, s->nw = nw;
  s->integrator = integrator, s->iterations = iterations;
  s->dt = dt, s->stiction = stiction, s->smooth = smooth;
  s->owners = PyList_New(0);
  s->lag = PyMem_Calloc(na + 1, sizeof(double));
  s->delay = PyMem_Calloc(na + 1, sizeof(int64_t));
  s->depth = 1;
  bool good = s->owners != NULL && s->lag != NULL && s->delay != NULL;
  for (int a = 0; good && a < na; a++) {
    s->lag[a] = PyFloat_AsDouble(PyTuple_GET_ITEM(lag, a));
    s->delay[a] = PyLong_AsLongLong(PyTuple_GET_ITEM(delay, a));
    if (s->delay[a] + 1 > s->depth) s->depth = (int)s->delay[a] + 1;
    good = !PyErr_Occurred();
  }
  if (good && contacts != Py_None) good = read_contacts(s, contacts);
  if (!good) Py_CLEAR(s);
  return (PyObject *)s;
}

static void stepper_dealloc(PyObject *self)
{
  Stepper *s = (Stepper *)self;
  Py_XDECREF(s->owners);
  for (int i = 0; i < ARRAYS; i++)
    if (s->state[i].obj != NULL) PyBuffer_Release(&s->state[i]);
  if (s->worker != NULL) release(s->worker);
  free(s->worker);
  PyMem_Free(s->stuck);
  PyMem_Free(s->lag);
  PyMem_Free(s->delay);
  PyMem_Free(s->contacts);
  PyMem_Free(s->heights);
  Py_TYPE(self)->tp_free(self);
}

/* Machine code, whose owner is kept; false with an exception. */
static bool read_kernel(Stepper *s, PyObject *given, Kernel *kernel)
{
  unsigned long long one, many, constants;
  PyObject *owner;
  if (!PyArg_ParseTuple(given, "KKKnO", &one, &many, &constants, &kernel->memory, &owner))
    return false;
  kernel->one = (Evaluate)(uintptr_t)one;
  kernel->many = (EvaluateRows)(uintptr_t)many;
  kernel->constants = (const double *)(uintptr_t)constants;
  return PyList_Append(s->owners, owner) == 0;
}

static PyObject *add_chart(PyObject *self, PyObject *arguments)
{
  Stepper *s = (Stepper *)self;
  PyObject *turns, *stage, *move = NULL;
  Chart chart = {.ny = s->ny};
  if (!PyArg_ParseTuple(arguments, "O!O!|O!:add_chart", &PyTuple_Type, &turns, &PyTuple_Type,
                        &stage, &PyTuple_Type, &move)
      || !read_kernel(s, stage, &chart.stage)
      || (move != NULL && !read_kernel(s, move, &chart.move)))
    return NULL;
  if (s->charts == MAX_CHARTS || PyTuple_GET_SIZE(turns) > MAX_TURNS)
    return PyErr_Format(PyExc_ValueError, "more than %d charts, or %d quaternions", MAX_CHARTS,
                        MAX_TURNS);
  chart.turns = (int)PyTuple_GET_SIZE(turns);
  for (int t = 0; t < chart.turns; t++)
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(turns, t), "ii", &chart.linear[t], &chart.angular[t]))
      return NULL;
  s->chart[s->charts++] = chart;
  return PyLong_FromLong(s->charts - 1);
}

/* Attach the arrays of the state, which runs change in place. */
static PyObject *attach(PyObject *self, PyObject *arguments)
{
  Stepper *s = (Stepper *)self;
  PyObject *arrays;
  Py_ssize_t n, threads;
  if (!PyArg_ParseTuple(arguments, "nO!n:attach", &n, &PyTuple_Type, &arrays, &threads))
    return NULL;
  if (PyTuple_GET_SIZE(arrays) != ARRAYS || n < 1 || s->rows != 0)
    return PyErr_Format(PyExc_ValueError, "not %d arrays, or attached already", ARRAYS);
  const Py_ssize_t sizes[ARRAYS] = {[Q] = n * s->nq,
                                    [YD] = n * s->ny,
                                    [CHART] = n,
                                    [LIMIT] = n,
                                    [WORK] = n,
                                    [ACTUAL] = n * s->na,
                                    [PIPE] = n * s->na * s->depth,
                                    [FORCES] =
                                        s->contacts == NULL ? 0 : 3 * n * s->contacts->points,
                                    [CLOCK] = n};
  void *data;
  for (int i = 0; i < ARRAYS; i++)
    if (!numbers(PyTuple_GET_ITEM(arrays, i), sizes[i], &s->state[i], &data)) return NULL;
  if ((s->stuck = PyMem_Calloc(n, sizeof(int64_t))) == NULL
      || (n == 1 && (s->worker = calloc(1, sizeof *s->worker)) == NULL))
    return PyErr_NoMemory();
  s->q = s->state[Q].buf, s->yd = s->state[YD].buf, s->chart_of = s->state[CHART].buf;
  s->limit = s->state[LIMIT].buf, s->work = s->state[WORK].buf, s->clock = s->state[CLOCK].buf;
  s->actual = s->state[ACTUAL].buf, s->pipe = s->state[PIPE].buf, s->forces = s->state[FORCES].buf;
  s->rows = n;
  s->threads = threads < 1 ? 1 : threads < n ? threads : n;
  Py_RETURN_NONE;
}

/* Have workers do a run. */
static void share_out(Worker *workers, const Run *run, Py_ssize_t threads)
{
  Py_ssize_t rows = run->self->rows, each = (rows + threads - 1) / threads;
  for (Py_ssize_t t = 0; t < threads; t++) {
    Worker *w = &workers[t];
    w->run = run;
    w->first = t * each < rows ? t * each : rows;
    w->end = (t + 1) * each < rows ? (t + 1) * each : rows;
    w->python_error = w->no_memory = false;
    w->started = t > 0 && pthread_create(&w->thread, NULL, work_on, w) == 0;
  }
  for (Py_ssize_t t = 0; t < threads; t++)
    if (!workers[t].started) work_on(&workers[t]);
  for (Py_ssize_t t = 0; t < threads; t++)
    if (workers[t].started) pthread_join(workers[t].thread, NULL);
}

/* None, or where a run failed the rows, the step at which the first of them did, and whether Python
   raised. */
static PyObject *outcome(const Worker *workers, Py_ssize_t threads, const Stepper *s)
{
  bool raised = false;
  Py_ssize_t first = 0;
  for (Py_ssize_t t = 0; t < threads; t++) {
    if (workers[t].no_memory) return PyErr_NoMemory();
    raised = raised || workers[t].python_error;
  }
  while (first < s->rows && !s->stuck[first]) first++;
  if (first == s->rows && !raised) Py_RETURN_NONE;
  PyObject *rows = PyList_New(0);
  for (Py_ssize_t row = first; rows != NULL && row < s->rows; row++) {
    if (!s->stuck[row]) continue;
    PyObject *number = PyLong_FromSsize_t(row);
    if (number == NULL || PyList_Append(rows, number) < 0) Py_CLEAR(rows);
    Py_XDECREF(number);
  }
  if (rows == NULL) return NULL;
  Py_ssize_t step = first < s->rows ? s->stuck[first] - 1 : 0;
  return Py_BuildValue("NnO", rows, step, raised ? Py_True : Py_False);
}

static PyObject *take_steps(Stepper *s, Run *run)
{
  if (s->charts == 0 || s->rows == 0)
    return PyErr_Format(PyExc_ValueError, "no charts, or no arrays");
  if (s->running)
    return PyErr_Format(PyExc_RuntimeError,
                        "another thread moves this simulator; give each its own");
  run->self = s;
  memset(s->stuck, 0, s->rows * sizeof(int64_t));
  s->running = true;
  Worker *workers = s->worker != NULL ? s->worker : calloc(s->threads, sizeof *workers);
  if (workers == NULL) {
    s->running = false;
    return PyErr_NoMemory();
  }
  bool alone = s->rows == 1 && run->steps == 1; /* too short to release the interpreter's lock */
  PyThreadState *state = alone ? NULL : PyEval_SaveThread();
  share_out(workers, run, s->threads);
  if (!alone) PyEval_RestoreThread(state);
  PyObject *result = outcome(workers, s->threads, s);
  if (workers != s->worker) {
    for (Py_ssize_t t = 0; t < s->threads; t++) release(&workers[t]);
    free(workers);
  }
  s->running = false;
  return result;
}

/* hold(efforts, steps, change): the same efforts at all steps. */
static PyObject *hold(PyObject *self, PyObject *const *arguments, Py_ssize_t count)
{
  Stepper *s = (Stepper *)self;
  Run r = {.effort_stride = 0};
  Py_buffer view;
  if (count != 3) return PyErr_Format(PyExc_TypeError, "hold takes 3 arguments");
  r.steps = PyLong_AsSsize_t(arguments[1]);
  if (r.steps == -1 && PyErr_Occurred()) return NULL;
  r.change = arguments[2];
  if (PyObject_GetBuffer(arguments[0], &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) {
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
  }
  bool fits = view.format != NULL && strcmp(view.format, "d") == 0
              && view.len == s->rows * s->na * (Py_ssize_t)sizeof(double)
              && (view.ndim == 2 || (view.ndim == 1 && s->rows == 1))
              && view.shape[view.ndim - 1] == s->na;
  double sum = 0.0;
  for (Py_ssize_t i = 0; fits && i < s->rows * s->na; i++) sum += ((double *)view.buf)[i];
  PyObject *result = NULL;
  if (fits && isfinite(sum)) {
    r.efforts = view.buf;
    result = take_steps(s, &r);
  } else {
    result = Py_NewRef(Py_NotImplemented);
  }
  PyBuffer_Release(&view);
  return result;
}

static PyObject *run(PyObject *self, PyObject *arguments)
{
  Stepper *s = (Stepper *)self;
  Run r = {.self = s};
  PyObject *objects[5];
  int held; /* whether the same efforts act at all steps */
  if (!PyArg_ParseTuple(arguments, "npOOOOOO:run", &r.steps, &held, &r.change, &objects[0],
                        &objects[1], &objects[2], &objects[3], &objects[4]))
    return NULL;
  Py_ssize_t all = s->rows * r.steps;
  const Py_ssize_t sizes[] = {(held ? s->rows : all) * s->na, s->rows * s->nw, all * s->nq,
                              all * s->ny, all};
  Py_buffer views[5] = {{0}};
  void *data[5];
  bool good = true;
  for (int i = 0; good && i < 5; i++) good = numbers(objects[i], sizes[i], &views[i], &data[i]);
  PyObject *result = NULL;
  if (good) {
    r.efforts = data[0], r.wrenches = data[1], r.out_q = data[2], r.out_yd = data[3];
    r.out_chart = data[4];
    r.effort_stride = held ? 0 : s->rows * s->na;
    result = take_steps(s, &r);
  }
  for (int i = 0; i < 5; i++)
    if (views[i].obj != NULL) PyBuffer_Release(&views[i]);
  return result;
}

static PyMethodDef methods[] = {
    {"add_chart", add_chart, METH_VARARGS,
     "add_chart(turns, stage[, move]) -> its number. Turns are places in y of linear (or -1) and"
     " angular velocities of joints with quaternions. A kernel is a tuple (address for one row, "
     "address for"
     " many or 0, address of constants, numbers of memory, owner)."},
    {"attach", attach, METH_VARARGS,
     "attach(rows, arrays, threads): the state, in arrays that runs change in place."},
    {"run", run, METH_VARARGS,
     "run(steps, held, change, efforts, wrenches, q, yd, charts): take steps; the last three arrays"
     " are outputs, or None. None, or where rows failed a tuple of these, the step of the first and"
     " whether change(row) raised. Other rows take all steps, unless it raised."},
    {"hold", (PyCFunction)(void (*)(void))hold, METH_FASTCALL,
     "hold(efforts, steps, change): as run, with the same efforts. NotImplemented where these are"
     " not finite doubles, one for each motor of each robot."},
    {NULL},
};

static PyTypeObject StepperType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros.simulation.stepper.Stepper",
    .tp_doc = "Stepper(nq, ny, na, nw, integrator, iterations, dt, stiction, smooth, lag,"
              " delay, contacts): integrates robots.",
    .tp_basicsize = sizeof(Stepper),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = stepper_new,
    .tp_dealloc = stepper_dealloc,
    .tp_methods = methods,
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "stepper", .m_size = -1};

PyMODINIT_FUNC PyInit_stepper(void)
{
  if (PyType_Ready(&StepperType) < 0) return NULL;
  PyObject *made = PyModule_Create(&module);
  if (made == NULL) return NULL;
  if (PyModule_AddObjectRef(made, "Stepper", (PyObject *)&StepperType) < 0
      || PyModule_AddIntMacro(made, MAX_POINTS) < 0 || PyModule_AddIntMacro(made, MAX_BODIES) < 0)
    Py_CLEAR(made);
  return made;
}
