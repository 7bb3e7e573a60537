/* rbda_ros.simulation.stepper: integrators over the kernel `simulation_stage`, for many robots.

   A chart is a choice of independent joints with its kernel. Each robot (row) is in one chart.
   Rows never see each other: results are the same whatever the batch, its blocks and threads. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void (*Evaluate)(double *const *ports);
typedef void (*EvaluateRows)(double *const *ports, const double *constants, double *memory,
                             int64_t rows);

enum { MAX_CHARTS = 64, MAX_TURNS = 64, PORTS = 12, MAX_BLOCK = 256, HALVINGS = 7 };
enum { EULER, RK4, MIDPOINT };

/* Largest residual of a loop after a step [m, sine of an angle]; above it, smaller steps. */
static const double CLOSED = 1e-10;
static const int MIDPOINT_ITERATIONS = 6;

typedef struct {
  Evaluate one;
  EvaluateRows many; /* NULL: row by row */
  const double *constants;
  Py_ssize_t memory;
} Chart;

typedef struct {
  PyObject_HEAD int nq, ny, na, nw, integrator, iterations, depth, charts, turns;
  double dt, stiction, smooth;
  Chart chart[MAX_CHARTS];
  int linear[MAX_TURNS], angular[MAX_TURNS]; /* quaternions: where their velocities are in y */
  double *lag;                               /* (na,) share of a command that arrives in a step */
  int64_t *delay;                            /* (na,) steps */
  PyObject *owners;
} Stepper;

/* Rows and what they are driven by. */
typedef struct {
  const Stepper *self;
  double *q, *yd, *limit, *work, *actual, *pipe;
  int64_t *chart, *clock;
  const double *efforts, *wrenches; /* (steps, rows, na); (rows, nw) or NULL */
  double *out_q, *out_yd;           /* (steps, rows, ...) or NULL */
  int64_t *out_chart;
  Py_ssize_t rows, steps, effort_stride;
  PyObject *change; /* callable(row) -> chart */
} Run;

typedef struct {
  const Run *run;
  Py_ssize_t first, end, failed, at_step;
  bool python_error, no_memory;
  pthread_t thread;
  bool started;
  /* A block of rows of everything. */
  double *q, *yd, *v, *slip, *shift, *delta, *stepping, *ydd, *next, *health, *u, *rate, *sum_u,
      *sum_a, *from, *start_v, *efforts, *memory, *power, *least;
  double *allocated;
  bool bad[MAX_BLOCK];
} Worker;

static void evaluate(Worker *w, const Chart *chart, Py_ssize_t n, double *from, double *q,
                     double *v, double *efforts, double *wrenches)
{
  const Stepper *s = w->run->self;
  double *ports[PORTS] = {from, q, v, w->slip, efforts, w->shift, w->delta, w->stepping};
  int p = 8;
  if (s->nw) ports[p++] = wrenches;
  ports[p++] = w->ydd;
  ports[p++] = w->next;
  ports[p] = w->health;
  if (chart->many != NULL && n > 1) {
    chart->many(ports, chart->constants, w->memory, n);
  } else {
    const int size[PORTS] = {s->nq, s->nq, s->ny, s->ny, s->na, s->ny, s->ny, 3};
    int sizes[PORTS];
    memcpy(sizes, size, sizeof sizes);
    p = 8;
    if (s->nw) sizes[p++] = s->nw;
    sizes[p++] = s->ny;
    sizes[p++] = s->nq;
    sizes[p] = 3;
    for (Py_ssize_t k = 0; k < n; k++) {
      double *row[PORTS];
      for (int i = 0; i <= p; i++) row[i] = ports[i] + k * sizes[i];
      chart->one(row);
    }
  }
  for (Py_ssize_t k = 0; k < n; k++) {
    double total = 0.0;
    for (int i = 0; i < s->ny; i++) total += fabs(w->ydd[k * s->ny + i]);
    if (!(w->health[3 * k] <= CLOSED) || !(total <= 1e30)) w->bad[k] = true;
  }
}

static void set_stepping(Worker *w, Py_ssize_t n, double gain, double h, double stiction)
{
  for (Py_ssize_t k = 0; k < n; k++) {
    w->stepping[3 * k] = gain;
    w->stepping[3 * k + 1] = h;
    w->stepping[3 * k + 2] = stiction;
  }
}

static void cross(const double *a, const double *b, double *c)
{
  c[0] = a[1] * b[2] - a[2] * b[1];
  c[1] = a[2] * b[0] - a[0] * b[2];
  c[2] = a[0] * b[1] - a[1] * b[0];
}

/* Rates of the way u from the origin, of velocities v in axes that have turned with u. */
static void rates(const Stepper *s, const double *u, const double *v, double *rate)
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

static void euler(Worker *w, const Chart *chart, Py_ssize_t n, double h, double *e, double *wrench)
{
  const Stepper *s = w->run->self;
  Py_ssize_t count = n * s->ny;
  memcpy(w->slip, w->yd, count * sizeof(double));
  for (Py_ssize_t i = 0; i < count; i++) w->shift[i] = w->delta[i] = h * w->yd[i];
  set_stepping(w, n, h * h, h, s->stiction);
  for (int round = 0; round < s->iterations; round++) {
    if (round > 0)
      for (Py_ssize_t i = 0; i < count; i++) w->slip[i] = w->yd[i] + h * w->ydd[i];
    evaluate(w, chart, n, w->q, w->q, w->yd, e, wrench);
    if (round == 0)
      for (Py_ssize_t k = 0; k < n; k++) w->least[k] = w->health[3 * k + 1];
  }
  for (Py_ssize_t k = 0; k < n; k++) w->power[k] = h * w->health[3 * k + 2];
  for (Py_ssize_t i = 0; i < count; i++) w->yd[i] += h * w->ydd[i];
  memcpy(w->q, w->next, n * s->nq * sizeof(double));
}

static void rk4(Worker *w, const Chart *chart, Py_ssize_t n, double h, double *e, double *wrench)
{
  static const double weight[4] = {1.0, 2.0, 2.0, 1.0}, part[4] = {0.5, 0.5, 1.0, 0.0};
  const Stepper *s = w->run->self;
  Py_ssize_t count = n * s->ny;
  memcpy(w->from, w->q, n * s->nq * sizeof(double));
  memcpy(w->start_v, w->yd, count * sizeof(double));
  memcpy(w->v, w->yd, count * sizeof(double));
  for (Py_ssize_t i = 0; i < count; i++) w->u[i] = w->sum_u[i] = w->sum_a[i] = 0.0;
  for (Py_ssize_t k = 0; k < n; k++) w->power[k] = 0.0;
  set_stepping(w, n, 0.0, 0.0, s->smooth);
  for (int stage = 0; stage < 4; stage++) {
    for (Py_ssize_t k = 0; k < n; k++)
      rates(s, w->u + k * s->ny, w->v + k * s->ny, w->rate + k * s->ny);
    for (Py_ssize_t i = 0; i < count; i++) {
      w->sum_u[i] += weight[stage] * w->rate[i];
      w->shift[i] = stage < 3 ? h * part[stage] * w->rate[i] : h / 6.0 * w->sum_u[i];
      w->delta[i] = w->shift[i] - w->u[i];
    }
    memcpy(w->slip, w->v, count * sizeof(double));
    evaluate(w, chart, n, w->from, w->q, w->v, e, wrench);
    for (Py_ssize_t i = 0; i < count; i++) {
      w->sum_a[i] += weight[stage] * w->ydd[i];
      w->v[i] = w->start_v[i] + h * part[stage] * w->ydd[i];
    }
    for (Py_ssize_t k = 0; k < n; k++) {
      if (stage == 0) w->least[k] = w->health[3 * k + 1];
      w->power[k] += h / 6.0 * weight[stage] * w->health[3 * k + 2];
    }
    memcpy(w->u, w->shift, count * sizeof(double));
    memcpy(w->q, w->next, n * s->nq * sizeof(double));
  }
  for (Py_ssize_t i = 0; i < count; i++) w->yd[i] = w->start_v[i] + h / 6.0 * w->sum_a[i];
}

/* Implicit midpoint by fixed-point iteration: symmetric in time, so energy does not drift. */
static void midpoint(Worker *w, const Chart *chart, Py_ssize_t n, double h, double *e,
                     double *wrench)
{
  const Stepper *s = w->run->self;
  Py_ssize_t count = n * s->ny;
  memcpy(w->from, w->q, n * s->nq * sizeof(double));
  memcpy(w->start_v, w->yd, count * sizeof(double));
  memcpy(w->v, w->yd, count * sizeof(double));
  for (Py_ssize_t i = 0; i < count; i++) w->u[i] = 0.0;
  set_stepping(w, n, 0.0, 0.0, s->smooth);
  for (int round = 0; round <= MIDPOINT_ITERATIONS; round++) {
    double way = round == MIDPOINT_ITERATIONS ? h : 0.5 * h;
    for (Py_ssize_t k = 0; k < n; k++)
      rates(s, w->u + k * s->ny, w->v + k * s->ny, w->rate + k * s->ny);
    for (Py_ssize_t i = 0; i < count; i++) {
      w->shift[i] = way * w->rate[i];
      w->delta[i] = w->shift[i] - w->u[i];
      w->slip[i] = w->v[i];
    }
    evaluate(w, chart, n, w->from, w->q, w->v, e, wrench);
    for (Py_ssize_t i = 0; i < count; i++) w->v[i] = w->start_v[i] + 0.5 * h * w->ydd[i];
    if (round == 0)
      for (Py_ssize_t k = 0; k < n; k++) w->least[k] = w->health[3 * k + 1];
    memcpy(w->u, w->shift, count * sizeof(double));
    memcpy(w->q, w->next, n * s->nq * sizeof(double));
  }
  for (Py_ssize_t k = 0; k < n; k++) w->power[k] = h * w->health[3 * k + 2];
  for (Py_ssize_t i = 0; i < count; i++) w->yd[i] = w->start_v[i] + h * w->ydd[i];
}

/* One step of rows that are in one chart; w->bad tells of which it failed. */
static void take_step(Worker *w, Py_ssize_t first, Py_ssize_t n, double h, double *efforts)
{
  const Run *run = w->run;
  const Stepper *s = run->self;
  const Chart *chart = &s->chart[run->chart[first]];
  double *wrench = s->nw ? (double *)run->wrenches + first * s->nw : NULL;
  for (Py_ssize_t k = 0; k < n; k++) w->bad[k] = false;
  memcpy(w->q, run->q + first * s->nq, n * s->nq * sizeof(double));
  memcpy(w->yd, run->yd + first * s->ny, n * s->ny * sizeof(double));
  if (s->integrator == EULER)
    euler(w, chart, n, h, efforts, wrench);
  else if (s->integrator == RK4)
    rk4(w, chart, n, h, efforts, wrench);
  else
    midpoint(w, chart, n, h, efforts, wrench);
  for (Py_ssize_t k = 0; k < n; k++) {
    if (w->bad[k]) continue;
    memcpy(run->q + (first + k) * s->nq, w->q + k * s->nq, s->nq * sizeof(double));
    memcpy(run->yd + (first + k) * s->ny, w->yd + k * s->ny, s->ny * sizeof(double));
    run->work[first + k] += w->power[k];
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

/* A row whose step fails, in ever smaller steps; then with other independent joints. */
static bool step_carefully(Worker *w, Py_ssize_t row, double *efforts)
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
        if (w->least[0] < run->limit[row] && !change_chart(w, row)) return false;
      }
      if (parts == of) return true;
    }
    if (!change_chart(w, row)) return false;
  }
  w->failed = row;
  return false;
}

/* Efforts of a row that motors give at this step: delayed, then lagging. */
static void drive(const Run *run, Py_ssize_t row, Py_ssize_t step, double *efforts)
{
  const Stepper *s = run->self;
  const double *command = run->efforts + step * run->effort_stride + row * s->na;
  double *actual = run->actual + row * s->na, *pipe = run->pipe + row * s->na * s->depth;
  int64_t now = run->clock[row] % s->depth;
  memcpy(pipe + now * s->na, command, s->na * sizeof(double));
  for (int a = 0; a < s->na; a++) {
    double delayed = pipe[(now + s->depth - s->delay[a]) % s->depth * s->na + a];
    actual[a] = s->lag[a] == 1.0 ? delayed : actual[a] + s->lag[a] * (delayed - actual[a]);
  }
  memcpy(efforts, actual, s->na * sizeof(double));
  run->clock[row]++;
}

static bool step_block(Worker *w, Py_ssize_t first, Py_ssize_t end, Py_ssize_t step)
{
  const Run *run = w->run;
  const Stepper *s = run->self;
  for (Py_ssize_t row = first; row < end; row++)
    drive(run, row, step, w->efforts + (row - first) * s->na);
  for (Py_ssize_t row = first; row < end;) {
    Py_ssize_t n = 1;
    while (row + n < end && run->chart[row + n] == run->chart[row]) n++;
    double *efforts = w->efforts + (row - first) * s->na;
    take_step(w, row, n, s->dt, efforts);
    bool good[MAX_BLOCK];
    for (Py_ssize_t k = 0; k < n; k++) {
      good[k] = !w->bad[k];
      if (good[k] && w->least[k] < run->limit[row + k] && !change_chart(w, row + k)) return false;
    }
    for (Py_ssize_t k = 0; k < n; k++)
      if (!good[k] && !step_carefully(w, row + k, efforts + k * s->na)) return false;
    row += n;
  }
  for (Py_ssize_t row = first; run->out_q != NULL && row < end; row++) {
    Py_ssize_t at = step * run->rows + row;
    memcpy(run->out_q + at * s->nq, run->q + row * s->nq, s->nq * sizeof(double));
    memcpy(run->out_yd + at * s->ny, run->yd + row * s->ny, s->ny * sizeof(double));
    run->out_chart[at] = run->chart[row];
  }
  return true;
}

static bool allocate(Worker *w, Py_ssize_t block)
{
  const Stepper *s = w->run->self;
  Py_ssize_t memory = 0, all = s->nq + s->ny + s->na + 8;
  for (int c = 0; c < MAX_CHARTS; c++)
    if (s->chart[c].memory > memory) memory = s->chart[c].memory;
  Py_ssize_t each = (block * all + 7) / 8 * 8;
  double **arrays[] = {&w->q,       &w->yd,       &w->v,     &w->slip,  &w->shift,
                       &w->delta,   &w->stepping, &w->ydd,   &w->next,  &w->health,
                       &w->u,       &w->rate,     &w->sum_u, &w->sum_a, &w->from,
                       &w->start_v, &w->efforts,  &w->power, &w->least};
  Py_ssize_t count = sizeof arrays / sizeof *arrays;
  w->allocated = calloc(each * count + memory + 16, sizeof(double));
  if (w->allocated == NULL) return false;
  double *at = (double *)(((uintptr_t)w->allocated + 63) / 64 * 64);
  w->memory = at;
  at += (memory + 7) / 8 * 8;
  for (Py_ssize_t i = 0; i < count; i++, at += each) *arrays[i] = at;
  return true;
}

static void *work_on(void *argument)
{
  Worker *w = argument;
  const Run *run = w->run;
  Py_ssize_t block = w->end - w->first < MAX_BLOCK ? w->end - w->first : MAX_BLOCK;
  if (!allocate(w, block)) {
    w->no_memory = true;
    return NULL;
  }
  bool good = true;
  for (Py_ssize_t first = w->first; good && first < w->end; first += block) {
    Py_ssize_t end = first + block < w->end ? first + block : w->end;
    for (Py_ssize_t step = 0; good && step < run->steps; step++) {
      w->at_step = step;
      good = step_block(w, first, end, step);
    }
  }
  free(w->allocated);
  return NULL;
}

static PyObject *stepper_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
  (void)keywords;
  int nq, ny, na, nw, integrator, iterations;
  double dt, stiction, smooth;
  PyObject *turns, *lag, *delay;
  if (!PyArg_ParseTuple(arguments, "iiiiiidddO!O!O!:Stepper", &nq, &ny, &na, &nw, &integrator,
                        &iterations, &dt, &stiction, &smooth, &PyTuple_Type, &turns, &PyTuple_Type,
                        &lag, &PyTuple_Type, &delay))
    return NULL;
  if (PyTuple_GET_SIZE(turns) > MAX_TURNS || PyTuple_GET_SIZE(lag) != na
      || PyTuple_GET_SIZE(delay) != na)
    return PyErr_Format(PyExc_ValueError, "sizes do not fit");
  Stepper *s = (Stepper *)type->tp_alloc(type, 0);
  if (s == NULL) return NULL;
  s->nq = nq, s->ny = ny, s->na = na, s->nw = nw;
  s->integrator = integrator, s->iterations = iterations;
  s->dt = dt, s->stiction = stiction, s->smooth = smooth;
  s->turns = (int)PyTuple_GET_SIZE(turns);
  s->owners = PyList_New(0);
  s->lag = PyMem_Calloc(na + 1, sizeof(double));
  s->delay = PyMem_Calloc(na + 1, sizeof(int64_t));
  s->depth = 1;
  bool good = s->owners != NULL && s->lag != NULL && s->delay != NULL;
  for (int t = 0; good && t < s->turns; t++)
    good = PyArg_ParseTuple(PyTuple_GET_ITEM(turns, t), "ii", &s->linear[t], &s->angular[t]);
  for (int a = 0; good && a < na; a++) {
    s->lag[a] = PyFloat_AsDouble(PyTuple_GET_ITEM(lag, a));
    s->delay[a] = PyLong_AsLongLong(PyTuple_GET_ITEM(delay, a));
    if (s->delay[a] + 1 > s->depth) s->depth = (int)s->delay[a] + 1;
    good = !PyErr_Occurred();
  }
  if (!good) Py_CLEAR(s);
  return (PyObject *)s;
}

static void stepper_dealloc(PyObject *self)
{
  Stepper *s = (Stepper *)self;
  Py_XDECREF(s->owners);
  PyMem_Free(s->lag);
  PyMem_Free(s->delay);
  Py_TYPE(self)->tp_free(self);
}

static PyObject *add_chart(PyObject *self, PyObject *arguments)
{
  Stepper *s = (Stepper *)self;
  unsigned long long one, many, constants;
  Chart chart;
  PyObject *owner;
  if (!PyArg_ParseTuple(arguments, "KKKnO:add_chart", &one, &many, &constants, &chart.memory,
                        &owner))
    return NULL;
  if (s->charts == MAX_CHARTS)
    return PyErr_Format(PyExc_ValueError, "%d charts are too many", MAX_CHARTS + 1);
  chart.one = (Evaluate)(uintptr_t)one;
  chart.many = (EvaluateRows)(uintptr_t)many;
  chart.constants = (const double *)(uintptr_t)constants;
  if (PyList_Append(s->owners, owner) < 0) return NULL;
  s->chart[s->charts++] = chart;
  return PyLong_FromLong(s->charts - 1);
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

static PyObject *run_steps(Run *run, Py_ssize_t threads)
{
  if (threads > run->rows) threads = run->rows;
  if (threads < 1) threads = 1;
  Worker *workers = calloc(threads, sizeof *workers);
  if (workers == NULL) return PyErr_NoMemory();
  Py_ssize_t each = (run->rows + threads - 1) / threads;
  PyThreadState *state = PyEval_SaveThread();
  for (Py_ssize_t t = 0; t < threads; t++) {
    Worker *w = &workers[t];
    w->run = run;
    w->failed = -1;
    w->first = t * each < run->rows ? t * each : run->rows;
    w->end = (t + 1) * each < run->rows ? (t + 1) * each : run->rows;
    w->started = t > 0 && pthread_create(&w->thread, NULL, work_on, w) == 0;
  }
  for (Py_ssize_t t = 0; t < threads; t++)
    if (!workers[t].started) work_on(&workers[t]);
  for (Py_ssize_t t = 0; t < threads; t++)
    if (workers[t].started) pthread_join(workers[t].thread, NULL);
  PyEval_RestoreThread(state);
  Py_ssize_t failed = -1, step = 0;
  bool raised = false, memory = false;
  for (Py_ssize_t t = 0; t < threads; t++) {
    raised = raised || workers[t].python_error;
    memory = memory || workers[t].no_memory;
    if (failed < 0 && workers[t].failed >= 0) failed = workers[t].failed, step = workers[t].at_step;
  }
  free(workers);
  if (memory) return PyErr_NoMemory();
  return Py_BuildValue("nnO", failed, step, raised ? Py_True : Py_False);
}

/* Arrays of `run`, in its order. */
enum {
  Q,
  YD,
  CHART,
  LIMIT,
  WORK,
  ACTUAL,
  PIPE,
  CLOCK,
  EFFORTS,
  WRENCHES,
  OUT_Q,
  OUT_YD,
  OUT_CHART,
  ARRAYS
};

static PyObject *run(PyObject *self, PyObject *arguments)
{
  const Stepper *s = (Stepper *)self;
  Run r = {.self = s};
  PyObject *arrays;
  Py_ssize_t threads;
  int held; /* whether the same efforts act at all steps */
  if (!PyArg_ParseTuple(arguments, "nnpO!On:run", &r.rows, &r.steps, &held, &PyTuple_Type, &arrays,
                        &r.change, &threads))
    return NULL;
  if (PyTuple_GET_SIZE(arrays) != ARRAYS || s->charts == 0)
    return PyErr_Format(PyExc_ValueError, "no charts, or not %d arrays", ARRAYS);
  Py_ssize_t n = r.rows, all = n * r.steps;
  const Py_ssize_t sizes[ARRAYS] = {n * s->nq,
                                    n * s->ny,
                                    n,
                                    n,
                                    n,
                                    n * s->na,
                                    n * s->na * s->depth,
                                    n,
                                    (held ? n : all) * s->na,
                                    n * s->nw,
                                    all * s->nq,
                                    all * s->ny,
                                    all};
  Py_buffer views[ARRAYS] = {{0}};
  void *data[ARRAYS];
  bool good = true;
  for (int i = 0; good && i < ARRAYS; i++)
    good = numbers(PyTuple_GET_ITEM(arrays, i), sizes[i], &views[i], &data[i]);
  PyObject *result = NULL;
  if (good) {
    r.q = data[Q], r.yd = data[YD], r.chart = data[CHART], r.limit = data[LIMIT];
    r.work = data[WORK], r.actual = data[ACTUAL], r.pipe = data[PIPE], r.clock = data[CLOCK];
    r.efforts = data[EFFORTS], r.wrenches = data[WRENCHES], r.out_q = data[OUT_Q];
    r.out_yd = data[OUT_YD], r.out_chart = data[OUT_CHART];
    r.effort_stride = held ? 0 : n * s->na;
    result = run_steps(&r, threads);
  }
  for (int i = 0; i < ARRAYS; i++)
    if (views[i].obj != NULL) PyBuffer_Release(&views[i]);
  return result;
}

static PyMethodDef methods[] = {
    {"add_chart", add_chart, METH_VARARGS,
     "add_chart(address for one row, address for many or 0, address of constants, numbers of"
     " memory, owner) -> its number: a kernel `simulation_stage`."},
    {"run", run, METH_VARARGS,
     "run(rows, steps, held, arrays, change, threads) -> (row that failed or -1, its step, whether"
     " change(row) raised): take steps. The arrays are changed in place."},
    {NULL},
};

static PyTypeObject StepperType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "rbda_ros.simulation.stepper.Stepper",
    .tp_doc = "Stepper(nq, ny, na, nw, integrator, iterations, dt, stiction, smooth, turns, lag,"
              " delay): integrates robots.",
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
      || PyModule_AddIntConstant(made, "MAX_CHARTS", MAX_CHARTS) < 0)
    Py_CLEAR(made);
  return made;
}
