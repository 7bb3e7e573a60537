/* Steps of robots whose contacts push, stick and slide: from what kernels found of each state to
   the velocity after the step. robot/friction_dynamics.py has the formulation. At the end, the
   solver of the cones for Python. */
#include "cones.h"
#include "engine.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Numbers of a contact, in the order of the columns of its row. */
enum { FRICTION, STIFFNESS, CONTACT_DAMPING, RESTITUTION, CONTACT_NUMBERS };

/* Data that all states of a call share. Of m rows the first 3 c are of the contacts, two
   tangents and the normal of each; then come those of joints and of what is held. */
typedef struct {
  ConeProblem cones;
  int ny, contacts, others;
  double dt, recovery;     /* the step; share of a penetration that it takes back */
  const double *contact;   /* (c x CONTACT_NUMBERS) */
  const double *parameter; /* (blocks) coefficients of friction, and bounds */
  double *compliance;      /* (m) R, velocity per impulse */
} StepProblem;

/* Inputs of one state. */
typedef struct {
  const double *yd, *ydd;  /* (ny) velocity before; acceleration without impulses */
  const double *gap;       /* (c) heights above the planes */
  const double *axes;      /* (c x 3 x 3) columns along the rows of each contact, in world axes */
  const double *J, *X, *A; /* of contacts: (3c x ny), H^-1 J' (ny x 3c) and J H^-1 J'; X and A
                               are NULL where only H^-1 is known */
  const double *J_o, *b_o; /* of the other rows: (k x ny), (k) */
  const double *inverse;   /* (ny x ny) H^-1; NULL where it is not needed */
} StepState;

/* Results of one state. p has the start before, and the solution after. */
typedef struct {
  double *yd, *ydd;  /* (ny) after the step; mean acceleration */
  double *forces;    /* (c x 3) mean forces of contacts, in world axes */
  double *p, *b, *c; /* (m) impulses, biases, velocities along the rows */
  double *J;         /* (m x ny) */
  double *missed;
  long *iterations;
} StepResult;

/* b of a contact along its normal: its velocity must be at least -b. */
static double bias_of(const StepProblem *problem, const double *contact, double gap,
                      double approach)
{
  double dt = problem->dt, stiffness = contact[STIFFNESS];
  if (isfinite(stiffness)) /* p = -dt (k (gap + dt v) + d v) */
    return stiffness * gap / (dt * stiffness + contact[CONTACT_DAMPING]);
  if (contact[RESTITUTION] > 0.0 && gap <= 0.0 && approach < 0.0)
    return contact[RESTITUTION] * approach;
  return (gap > 0.0 ? gap : problem->recovery * gap) / dt;
}

/* R of contacts whose planes are not rigid; zero for all others. */
static void set_compliance(StepProblem *problem)
{
  memset(problem->compliance, 0, problem->cones.m * sizeof *problem->compliance);
  for (int c = 0; c < problem->contacts; c++) {
    const double *contact = problem->contact + c * CONTACT_NUMBERS;
    double both = problem->dt * contact[STIFFNESS] + contact[CONTACT_DAMPING];
    for (int i = 0; i < 3; i++) problem->compliance[3 * c + i] = 1.0 / (problem->dt * both);
  }
}

static double dot(const double *a, const double *b, int n)
{
  double sum = 0.0;
  for (int i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

/* X = H^-1 J' (ny x m): the columns of contacts are copied if they are known. */
static void respond(const StepProblem *problem, const StepState *state, const double *J, double *X)
{
  int ny = problem->ny, m = problem->cones.m, known = state->X == NULL ? 0 : 3 * problem->contacts;
  for (int i = 0; i < ny; i++) {
    for (int r = 0; r < known; r++) X[(size_t)i * m + r] = state->X[(size_t)i * known + r];
    for (int r = known; r < m; r++)
      X[(size_t)i * m + r] = dot(state->inverse + (size_t)i * ny, J + (size_t)r * ny, ny);
  }
}

/* A = J X + R (m x m), symmetric. */
static void couple(const StepProblem *problem, const StepState *state, const double *J,
                   const double *X, double *A)
{
  int ny = problem->ny, m = problem->cones.m, known = state->A == NULL ? 0 : 3 * problem->contacts;
  for (int r = 0; r < m; r++)
    for (int s = r; s < m; s++) {
      double sum = 0.0;
      if (s < known)
        sum = state->A[(size_t)r * known + s];
      else
        for (int i = 0; i < ny; i++) sum += J[(size_t)r * ny + i] * X[(size_t)i * m + s];
      A[(size_t)r * m + s] = A[(size_t)s * m + r] = sum;
    }
  for (int r = 0; r < m; r++) A[(size_t)r * m + r] += problem->compliance[r];
}

/* How many doubles of memory a step takes. */
static size_t step_numbers(const StepProblem *problem)
{
  size_t m = problem->cones.m, ny = problem->ny;
  return m * m + m * ny + m + ny + cone_numbers((int)m, problem->cones.blocks);
}

/* A step of one state. */
static void take_step(const StepProblem *problem, const StepState *state, const StepResult *result,
                      double *memory)
{
  int ny = problem->ny, m = problem->cones.m, contacts = problem->contacts;
  double dt = problem->dt;
  double *A = memory, *X = A + (size_t)m * m, *g = X + (size_t)m * ny, *free = g + m;
  for (int i = 0; i < ny; i++) free[i] = state->yd[i] + dt * state->ydd[i];
  memcpy(result->J, state->J, (size_t)3 * contacts * ny * sizeof *A);
  memcpy(result->J + (size_t)3 * contacts * ny, state->J_o,
         (size_t)problem->others * ny * sizeof *A);
  respond(problem, state, result->J, X);
  couple(problem, state, result->J, X, A);
  for (int c = 0; c < contacts; c++) {
    const double *normal = result->J + (size_t)(3 * c + 2) * ny;
    result->b[3 * c] = result->b[3 * c + 1] = 0.0;
    result->b[3 * c + 2] = bias_of(problem, problem->contact + c * CONTACT_NUMBERS, state->gap[c],
                                   dot(normal, state->yd, ny));
  }
  memcpy(result->b + 3 * contacts, state->b_o, problem->others * sizeof *A);
  for (int r = 0; r < m; r++) g[r] = result->b[r] + dot(result->J + (size_t)r * ny, free, ny);
  *result->iterations = 0;
  *result->missed = 0.0;
  if (m > 0)
    *result->missed = solve_cone_problem(&problem->cones, A, g, problem->parameter, result->p,
                                         result->iterations, free + ny);
  for (int i = 0; i < ny; i++) {
    result->yd[i] = free[i] + dot(X + (size_t)i * m, result->p, m);
    result->ydd[i] = (result->yd[i] - state->yd[i]) / dt;
  }
  for (int r = 0; r < m; r++) result->c[r] = g[r] + dot(A + (size_t)r * m, result->p, m);
  for (int c = 0; c < contacts; c++)
    for (int i = 0; i < 3; i++)
      result->forces[3 * c + i] = dot(state->axes + 9 * c + 3 * i, result->p + 3 * c, 3) / dt;
}

/* The numbers of a contiguous array of this size; NULL with an exception for any other array. */
static double *array_numbers(PyObject *given, npy_intp size, const char *name)
{
  PyArrayObject *array = (PyArrayObject *)given;
  if (PyArray_Check(given) && has_numbers(array) && PyArray_IS_C_CONTIGUOUS(array)
      && PyArray_SIZE(array) == size)
    return PyArray_DATA(array);
  PyErr_Format(PyExc_ValueError, "%s: not %zd numbers in a row", name, (Py_ssize_t)size);
  return NULL;
}

/* A new array (n, first, second), without the dimensions that are negative. */
static PyObject *new_rows(npy_intp n, npy_intp first, npy_intp second, int type)
{
  npy_intp shape[3];
  int dimensions = 0;
  if (n >= 0) shape[dimensions++] = n;
  if (first >= 0) shape[dimensions++] = first;
  if (second >= 0) shape[dimensions++] = second;
  return PyArray_SimpleNew(dimensions, shape, type);
}

enum { YD, YDD, FORCES, P, B, C, ALL_J, MISSED, ITERATIONS, COMPLIANCE, RESULTS };

/* Take the steps of all states; returns 0 if memory is short. arrays[P] has the starts. */
static int take_steps(StepProblem *problem, npy_intp n, const StepState *first, npy_intp axes,
                      PyObject *const *arrays)
{
  npy_intp ny = problem->ny, m = problem->cones.m, c3 = 3 * (npy_intp)problem->contacts;
  npy_intp k = problem->others;
  double *out[MISSED + 1], *memory = PyMem_Malloc((step_numbers(problem) + 1) * sizeof *memory);
  if (memory == NULL) return 0;
  for (int i = 0; i <= MISSED; i++) out[i] = PyArray_DATA((PyArrayObject *)arrays[i]);
  long *iterations = PyArray_DATA((PyArrayObject *)arrays[ITERATIONS]);
  Py_BEGIN_ALLOW_THREADS;
  for (npy_intp i = 0; i < n; i++) {
    const StepState state = {.yd = first->yd + i * ny,
                             .ydd = first->ydd + i * ny,
                             .gap = first->gap + i * problem->contacts,
                             .axes = first->axes + i * axes,
                             .J = first->J + i * c3 * ny,
                             .X = first->X ? first->X + i * c3 * ny : NULL,
                             .A = first->A ? first->A + i * c3 * c3 : NULL,
                             .J_o = first->J_o + i * k * ny,
                             .b_o = first->b_o + i * k,
                             .inverse = first->inverse ? first->inverse + i * ny * ny : NULL};
    const StepResult result = {.yd = out[YD] + i * ny,
                               .ydd = out[YDD] + i * ny,
                               .forces = out[FORCES] + i * c3,
                               .p = out[P] + i * m,
                               .b = out[B] + i * m,
                               .c = out[C] + i * m,
                               .J = out[ALL_J] + i * m * ny,
                               .missed = out[MISSED] + i,
                               .iterations = iterations + i};
    take_step(problem, &state, &result, memory);
  }
  Py_END_ALLOW_THREADS;
  PyMem_Free(memory);
  return 1;
}

/* Read the arrays of all states; returns 0 with an exception if their sizes do not fit. */
static int read_states(StepProblem *problem, npy_intp n, PyObject *const *given, StepState *state,
                       npy_intp *axes)
{
  npy_intp ny = problem->ny, c = problem->contacts, k = problem->others;
  int known = given[5] != Py_None; /* X, and A with it */
  const struct {
    const double **into;
    npy_intp size;
    const char *name;
  } all[] = {
      {&state->yd, n * ny, "yd"},
      {&state->ydd, n * ny, "ydd"},
      {&state->gap, n * c, "gaps"},
      {&state->axes, PyArray_Check(given[3]) ? PyArray_SIZE((PyArrayObject *)given[3]) : 0, "axes"},
      {&state->J, n * 3 * c * ny, "J"},
      {&state->X, n * 3 * c * ny, "X"},
      {&state->A, n * 9 * c * c, "A"},
      {&state->J_o, n * k * ny, "J of others"},
      {&state->b_o, n * k, "b of others"},
      {&state->inverse, n * ny * ny, "inverse"}};
  for (int i = 0; i < 10; i++) {
    if (given[i] == Py_None && i >= 5 && i != 7 && i != 8) continue;
    if ((*all[i].into = array_numbers(given[i], all[i].size, all[i].name)) == NULL) return 0;
  }
  *axes = all[3].size == 9 * c ? 0 : 9 * c;
  if (*axes == 0 || all[3].size == n * 9 * c) {
    if ((known && state->A != NULL && k == 0) || state->inverse != NULL || 3 * c + k == 0) return 1;
  }
  PyErr_SetString(PyExc_ValueError, "axes, responses and inverse do not belong together");
  return 0;
}

PyObject *frictional_steps(PyObject *self, PyObject *arguments)
{
  (void)self;
  const char *kinds;
  Py_ssize_t blocks;
  double dt, recovery, tolerance;
  long most;
  PyObject *contact, *parameters, *start, *given[10];
  int first[MAX_CONE_ROWS + 1];
  if (!PyArg_ParseTuple(arguments, "s#dddlOOOOOOOOOOOOO", &kinds, &blocks, &dt, &recovery,
                        &tolerance, &most, &contact, &parameters, &start, &given[0], &given[1],
                        &given[2], &given[3], &given[4], &given[5], &given[6], &given[7], &given[8],
                        &given[9]))
    return NULL;
  int m = blocks > MAX_CONE_ROWS ? -1 : cone_rows(kinds, blocks, first);
  PyArrayObject *yd = (PyArrayObject *)given[0];
  if (m < 0 || !PyArray_Check(given[0]) || PyArray_NDIM(yd) < 1 || PyArray_NDIM(yd) > 2
      || !PyArray_Check(contact)) {
    PyErr_SetString(PyExc_ValueError, "kinds of rows are unknown, or too many");
    return NULL;
  }
  npy_intp batch = PyArray_NDIM(yd) == 2 ? PyArray_DIM(yd, 0) : -1, n = batch < 0 ? 1 : batch;
  int contacts = (int)(PyArray_SIZE((PyArrayObject *)contact) / CONTACT_NUMBERS);
  StepProblem problem = {.cones = {m, (int)blocks, 1, kinds, first, tolerance, most},
                         .ny = (int)PyArray_DIM(yd, PyArray_NDIM(yd) - 1),
                         .contacts = contacts,
                         .others = m - 3 * contacts,
                         .dt = dt,
                         .recovery = recovery};
  StepState state = {0};
  npy_intp axes;
  if (problem.others < 0) {
    PyErr_SetString(PyExc_ValueError, "more contacts than kinds of rows");
    return NULL;
  }
  if (!(problem.contact = array_numbers(contact, contacts * CONTACT_NUMBERS, "contact"))
      || !(problem.parameter = array_numbers(parameters, blocks, "parameters"))
      || !read_states(&problem, n, given, &state, &axes))
    return NULL;
  npy_intp ny = problem.ny;
  PyObject *made[RESULTS] = {
      new_rows(batch, ny, -1, NPY_DOUBLE),      new_rows(batch, ny, -1, NPY_DOUBLE),
      new_rows(batch, contacts, 3, NPY_DOUBLE), new_rows(batch, m, -1, NPY_DOUBLE),
      new_rows(batch, m, -1, NPY_DOUBLE),       new_rows(batch, m, -1, NPY_DOUBLE),
      new_rows(batch, m, ny, NPY_DOUBLE),       new_rows(batch, -1, -1, NPY_DOUBLE),
      new_rows(batch, -1, -1, NPY_LONG),        new_rows(-1, m, -1, NPY_DOUBLE)};
  PyObject *answer = NULL;
  int good = 1;
  for (int i = 0; i < RESULTS; i++) good = good && made[i] != NULL;
  if (good) {
    double *p = PyArray_DATA((PyArrayObject *)made[P]);
    const double *from = start == Py_None ? NULL : array_numbers(start, n * m, "start");
    good = from != NULL || start == Py_None;
    if (from != NULL)
      memcpy(p, from, n * m * sizeof *p);
    else
      memset(p, 0, n * m * sizeof *p);
    problem.compliance = PyArray_DATA((PyArrayObject *)made[COMPLIANCE]);
    set_compliance(&problem);
    if (good && !take_steps(&problem, n, &state, axes, made))
      PyErr_NoMemory();
    else if (good && !all_within(PyArray_DATA((PyArrayObject *)made[YD]), n * ny, DBL_MAX))
      answer = Py_NewRef(Py_None); /* the mass matrix is singular */
    else if (good)
      answer = PyTuple_New(RESULTS);
  }
  for (int i = 0; i < RESULTS; i++)
    if (answer != NULL && answer != Py_None)
      PyTuple_SET_ITEM(answer, i, made[i]);
    else
      Py_XDECREF(made[i]);
  return answer;
}

/* Biases (3c) and compliances (3c) of contacts at one state. */
PyObject *contact_biases(PyObject *self, PyObject *arguments)
{
  (void)self;
  PyObject *contact, *gaps, *approach;
  StepProblem problem = {0};
  if (!PyArg_ParseTuple(arguments, "ddO!O!O!", &problem.dt, &problem.recovery, &PyArray_Type,
                        &contact, &PyArray_Type, &gaps, &PyArray_Type, &approach))
    return NULL;
  npy_intp c = PyArray_SIZE((PyArrayObject *)gaps), rows = 3 * c;
  const double *gap = array_numbers(gaps, c, "gaps");
  const double *speed = array_numbers(approach, c, "approach");
  problem.contact = array_numbers(contact, c * CONTACT_NUMBERS, "contact");
  if (gap == NULL || speed == NULL || problem.contact == NULL) return NULL;
  PyObject *b = new_vector(rows), *R = new_vector(rows);
  if (b == NULL || R == NULL) {
    Py_XDECREF(b);
    Py_XDECREF(R);
    return NULL;
  }
  double *biases = PyArray_DATA((PyArrayObject *)b);
  problem.compliance = PyArray_DATA((PyArrayObject *)R);
  problem.contacts = (int)c;
  problem.cones.m = (int)rows;
  set_compliance(&problem);
  memset(biases, 0, rows * sizeof *biases);
  for (npy_intp i = 0; i < c; i++)
    biases[3 * i + 2] = bias_of(&problem, problem.contact + i * CONTACT_NUMBERS, gap[i], speed[i]);
  return Py_BuildValue("NN", b, R);
}

/* Which limits of joints some state is near, from either side: (2, limits) booleans; None for
   none. Arguments: dt, near, q, yd, ydd, G or None for the identity, places in q and in qd, bounds
   (2, limits). */
PyObject *near_limits(PyObject *self, PyObject *arguments)
{
  (void)self;
  double dt, near;
  PyArrayObject *q, *yd, *ydd, *places, *rates, *bounds;
  PyObject *map;
  if (!PyArg_ParseTuple(arguments, "ddO!O!O!OO!O!O!", &dt, &near, &PyArray_Type, &q, &PyArray_Type,
                        &yd, &PyArray_Type, &ydd, &map, &PyArray_Type, &places, &PyArray_Type,
                        &rates, &PyArray_Type, &bounds))
    return NULL;
  if (PyArray_NDIM(q) < 1 || PyArray_NDIM(ydd) < 1) {
    PyErr_SetString(PyExc_ValueError, "q and ydd are no vectors");
    return NULL;
  }
  npy_intp limits = PyArray_SIZE(places), ny = PyArray_DIM(ydd, PyArray_NDIM(ydd) - 1);
  npy_intp nq = PyArray_DIM(q, PyArray_NDIM(q) - 1), n = ny ? PyArray_SIZE(ydd) / ny : 0;
  npy_intp nv = map == Py_None || !ny || !n ? ny : PyArray_SIZE((PyArrayObject *)map) / (n * ny);
  const double *q_n = array_numbers((PyObject *)q, n * nq, "q");
  const double *yd_n = array_numbers((PyObject *)yd, n * ny, "yd");
  const double *ydd_n = array_numbers((PyObject *)ydd, n * ny, "ydd");
  const double *bound = array_numbers((PyObject *)bounds, 2 * limits, "bounds");
  const double *G = map == Py_None ? NULL : array_numbers(map, n * nv * ny, "G");
  if (!q_n || !yd_n || !ydd_n || !bound || (map != Py_None && !G)) return NULL;
  if (PyArray_TYPE(places) != NPY_INTP || PyArray_TYPE(rates) != NPY_INTP
      || PyArray_SIZE(rates) != limits || !PyArray_IS_C_CONTIGUOUS(places)
      || !PyArray_IS_C_CONTIGUOUS(rates)) {
    PyErr_SetString(PyExc_ValueError, "places and rates are not those of limits");
    return NULL;
  }
  const npy_intp *place = PyArray_DATA(places), *rate = PyArray_DATA(rates);
  npy_intp shape[] = {2, limits};
  PyObject *answer = PyArray_ZEROS(2, shape, NPY_BOOL, 0);
  if (answer == NULL) return NULL;
  npy_bool *close = PyArray_DATA((PyArrayObject *)answer);
  int any = 0;
  for (npy_intp i = 0; i < n; i++, q_n += nq, yd_n += ny, ydd_n += ny)
    for (npy_intp l = 0; l < limits; l++) {
      if (place[l] < 0 || place[l] >= nq || rate[l] < 0 || rate[l] >= nv) continue;
      double position = q_n[place[l]], speed = 0.0;
      const double *row = G == NULL ? NULL : G + (i * nv + rate[l]) * ny;
      if (row == NULL)
        speed = yd_n[rate[l]] + dt * ydd_n[rate[l]];
      else
        for (npy_intp k = 0; k < ny; k++) speed += row[k] * (yd_n[k] + dt * ydd_n[k]);
      double reach = fmax(near, 2.0 * dt * fabs(speed));
      if (position - bound[l] < reach) close[l] = 1, any = 1;
      if (bound[limits + l] - position < reach) close[limits + l] = 1, any = 1;
    }
  if (any) return answer;
  Py_DECREF(answer);
  Py_RETURN_NONE;
}

static int has_shape(PyArrayObject *array, int dimensions, const npy_intp *shape)
{
  return PyArray_TYPE(array) == NPY_DOUBLE && PyArray_IS_C_CONTIGUOUS(array)
         && PyArray_NDIM(array) == dimensions
         && memcmp(PyArray_DIMS(array), shape, dimensions * sizeof *shape) == 0;
}

PyObject *solve_cones(PyObject *self, PyObject *arguments)
{
  (void)self;
  const char *kinds;
  Py_ssize_t blocks;
  PyArrayObject *A, *g, *parameters, *x;
  int coulomb, first[MAX_CONE_ROWS + 1];
  double tolerance;
  long most;
  if (!PyArg_ParseTuple(arguments, "s#O!O!O!O!pdl", &kinds, &blocks, &PyArray_Type, &A,
                        &PyArray_Type, &g, &PyArray_Type, &parameters, &PyArray_Type, &x, &coulomb,
                        &tolerance, &most))
    return NULL;
  int m = blocks > MAX_CONE_ROWS ? -1 : cone_rows(kinds, blocks, first);
  npy_intp count = PyArray_NDIM(A) > 0 ? PyArray_DIM(A, 0) : 0;
  npy_intp square[] = {count, m, m}, rows[] = {count, m}, each[] = {count, blocks};
  if (m < 0 || !has_shape(A, 3, square) || !has_shape(g, 2, rows) || !has_shape(x, 2, rows)
      || !has_shape(parameters, 2, each) || !PyArray_ISWRITEABLE(x)) {
    PyErr_SetString(PyExc_ValueError, "kinds, matrices and vectors do not belong together");
    return NULL;
  }
  const ConeProblem problem = {m, (int)blocks, coulomb, kinds, first, tolerance, most};
  double *memory = PyMem_Malloc(cone_numbers(m, (int)blocks) * sizeof *memory);
  PyArrayObject *missed = (PyArrayObject *)PyArray_SimpleNew(1, &count, NPY_DOUBLE);
  PyArrayObject *taken = (PyArrayObject *)PyArray_SimpleNew(1, &count, NPY_LONG);
  if (missed == NULL || taken == NULL || memory == NULL) {
    Py_XDECREF(missed);
    Py_XDECREF(taken);
    PyMem_Free(memory);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
  }
  const double *A_n = PyArray_DATA(A), *g_n = PyArray_DATA(g), *p_n = PyArray_DATA(parameters);
  double *x_n = PyArray_DATA(x), *missed_n = PyArray_DATA(missed);
  long *taken_n = PyArray_DATA(taken);
  Py_BEGIN_ALLOW_THREADS;
  for (npy_intp n = 0; n < count; n++)
    missed_n[n] = solve_cone_problem(&problem, A_n + n * m * m, g_n + n * m, p_n + n * blocks,
                                     x_n + n * m, taken_n + n, memory);
  Py_END_ALLOW_THREADS;
  PyMem_Free(memory);
  return Py_BuildValue("NN", missed, taken);
}
