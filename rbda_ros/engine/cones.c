/* Impulses of contacts with friction, of limits and of dry friction.

   Finds x with c = A x + g and, for each block of rows,

     e, equality   c = 0
     p, positive   0 <= x, 0 <= c, x c = 0
     b, box        |x| <= bound, c = 0 inside, c <= 0 at the upper end, c >= 0 at the lower
     c, cone       |x_t| <= mu x_n; rows are two tangents and the normal. With Coulomb's law
                   x and c + (0, 0, mu |c_t|) are in the cone and its dual, and orthogonal
                   (De Saxce); without it x and c are, which is a convex problem.

   A semismooth Newton method on x = P(x - c - s), begun from where an alternating direction method
   of multipliers (ADMM; Carpentier, Le Lidec and Montaut 2024) has come: that finds which contacts
   stick, slide and open from anywhere, the former has all digits a few steps later. A may be
   singular: contacts may be redundant. */
#include "cones.h"

#include <math.h>
#include <string.h>

enum { ROUND = 10, NEWTON_STEPS = 20, HALVINGS = 6 };

/* Added to the diagonal of what Newton factors, over it: at first, and where that did not do. A
   larger one takes more steps and bears more contradicting roundings of redundant contacts. */
static const double REGULARIZATION = 1e-11, STRONGER = 1e-8;
static const double DAMPING = 1e-6; /* of the ADMM: keeps forces that are not determined */

/* One problem, scaled so that the diagonal of A is one on average in each block. */
typedef struct {
  const ConeProblem *of;
  double *A, *g, *parameter, *scale; /* scale: of each row */
  double *x, *c, *F, *y, *z, *before, *right, *step, *trial;
  double *factor, *lu;
  double regularization;
} Work;

static double length2(const double *t)
{
  return sqrt(t[0] * t[0] + t[1] * t[1]);
}

static double clamp(double x, double bound)
{
  return x > bound ? bound : x < -bound ? -bound : x;
}

/* Where a point p of a cone block is: inside (1), on the way to the apex (-1), beside it (0). */
static int side_of(const double *p, double mu)
{
  double t = length2(p);
  if (t <= mu * p[2]) return 1;
  return mu * t <= -p[2] ? -1 : 0;
}

/* The nearest point of a block's set. */
static void project(char kind, double parameter, const double *p, double *out)
{
  if (kind == 'e')
    out[0] = p[0];
  else if (kind == 'p')
    out[0] = p[0] > 0.0 ? p[0] : 0.0;
  else if (kind == 'b')
    out[0] = clamp(p[0], parameter);
  else {
    int side = side_of(p, parameter);
    double t = length2(p), w = (p[2] + parameter * t) / (1.0 + parameter * parameter);
    double along = side == 0 ? parameter * w / t : side > 0;
    out[0] = along * p[0];
    out[1] = along * p[1];
    out[2] = side == 0 ? w : side > 0 ? p[2] : 0.0;
  }
}

static void multiply(const double *A, const double *x, const double *g, int m, double *out)
{
  for (int i = 0; i < m; i++) {
    double sum = g[i];
    for (int j = 0; j < m; j++) sum += A[i * m + j] * x[j];
    out[i] = sum;
  }
}

/* p = x - c - s of a block, with c the velocity along its rows. */
static int point_of(const ConeProblem *problem, int b, const double *x, const double *c, double mu,
                    double *p)
{
  int i = problem->first[b], rows = problem->first[b + 1] - i;
  for (int k = 0; k < rows; k++) p[k] = x[i + k] - c[i + k];
  if (rows == 3 && problem->coulomb) p[2] -= mu * length2(c + i);
  return i;
}

/* F = x - P(x - c - s), and the largest that a velocity misses, in the units of the caller. */
static double natural_map(const Work *work, const double *x, double *c, double *F)
{
  const ConeProblem *problem = work->of;
  double worst = 0.0;
  multiply(work->A, x, work->g, problem->m, c);
  for (int b = 0; b < problem->blocks; b++) {
    double p[3], nearest[3];
    int i = point_of(problem, b, x, c, work->parameter[b], p);
    project(problem->kind[b], work->parameter[b], p, nearest);
    for (int k = i; k < problem->first[b + 1]; k++) {
      F[k] = x[k] - nearest[k - i];
      double missed = fabs(F[k]) / work->scale[k];
      if (!(missed <= worst)) worst = missed; /* also where it is no number */
    }
  }
  return worst;
}

/* Rows of the derivative of F, or of what is zero with it, and minus its value on the right. */
static void newton_rows(Work *work, const double *x, const double *c)
{
  const ConeProblem *problem = work->of;
  int m = problem->m;
  memset(work->lu, 0, (size_t)m * m * sizeof(double));
  for (int b = 0; b < problem->blocks; b++) {
    double p[3], mu = work->parameter[b];
    int i = point_of(problem, b, x, c, mu, p), end = problem->first[b + 1];
    char kind = problem->kind[b];
    int sticks = kind == 'e' || (kind == 'p' && p[0] > 0.0) || (kind == 'b' && fabs(p[0]) < mu);
    int side = kind == 'c' ? side_of(p, mu) : sticks ? 1 : -1;
    for (int k = i; k < end; k++) {
      double *row = work->lu + (size_t)k * m;
      if (side > 0) { /* c = 0 */
        memcpy(row, work->A + (size_t)k * m, m * sizeof(double));
        row[k] += work->regularization;
        work->right[k] = -c[k];
      } else if (side < 0) { /* x at the end of its range */
        row[k] = 1.0;
        work->right[k] = (kind == 'b' ? clamp(p[0], mu) : 0.0) - x[k];
      }
    }
    if (side != 0) continue;
    /* Sliding: dF = dx - DP (dx - dc - ds). */
    double t = length2(p), e[2] = {p[0] / t, p[1] / t}, over = 1.0 / (1.0 + mu * mu);
    double w = (p[2] + mu * t) * over, slip = length2(c + i);
    double DP[3][3];
    for (int k = 0; k < 2; k++) {
      for (int l = 0; l < 2; l++)
        DP[k][l] = mu * mu * over * e[k] * e[l] + mu * w / t * ((k == l) - e[k] * e[l]);
      DP[k][2] = mu * over * e[k];
      DP[2][k] = mu * over * e[k];
    }
    DP[2][2] = over;
    double d[2] = {0.0, 0.0};
    if (problem->coulomb && slip > 0.0)
      for (int k = 0; k < 2; k++) d[k] = mu * c[i + k] / slip;
    for (int k = 0; k < 3; k++) {
      double *row = work->lu + (size_t)(i + k) * m, weight[3];
      for (int l = 0; l < 3; l++) weight[l] = DP[k][l] + (l < 2 ? DP[k][2] * d[l] : 0.0);
      for (int l = 0; l < 3; l++) {
        const double *of_A = work->A + (size_t)(i + l) * m;
        for (int j = 0; j < m; j++) row[j] += weight[l] * of_A[j];
        row[i + l] += (k == l) - DP[k][l] + (k == l) * work->regularization;
      }
      work->right[i + k] = -work->F[i + k];
    }
  }
}

/* Solve lu step = right by elimination with row pivots; whether that could be. */
static int solve_dense(Work *work)
{
  int m = work->of->m;
  double *lu = work->lu, *b = work->step;
  memcpy(b, work->right, m * sizeof(double));
  for (int k = 0; k < m; k++) {
    int best = k;
    for (int i = k + 1; i < m; i++)
      if (fabs(lu[(size_t)i * m + k]) > fabs(lu[(size_t)best * m + k])) best = i;
    double pivot = lu[(size_t)best * m + k];
    if (!(fabs(pivot) > 1e-300) || !isfinite(pivot)) return 0;
    if (best != k) {
      for (int j = k; j < m; j++) {
        double kept = lu[(size_t)k * m + j];
        lu[(size_t)k * m + j] = lu[(size_t)best * m + j];
        lu[(size_t)best * m + j] = kept;
      }
      double kept = b[k];
      b[k] = b[best];
      b[best] = kept;
    }
    for (int i = k + 1; i < m; i++) {
      double share = lu[(size_t)i * m + k] / pivot;
      if (share == 0.0) continue;
      for (int j = k + 1; j < m; j++) lu[(size_t)i * m + j] -= share * lu[(size_t)k * m + j];
      b[i] -= share * b[k];
    }
  }
  for (int i = m - 1; i >= 0; i--) {
    for (int j = i + 1; j < m; j++) b[i] -= lu[(size_t)i * m + j] * b[j];
    b[i] /= lu[(size_t)i * m + i];
  }
  return 1;
}

static double norm(const double *x, int m)
{
  double sum = 0.0;
  for (int i = 0; i < m; i++) sum += x[i] * x[i];
  return sqrt(sum);
}

/* Newton steps from x, each halved until it leads nearer; what velocities miss in the end. */
static double newton(Work *work, long *iterations)
{
  int m = work->of->m;
  double missed = natural_map(work, work->x, work->c, work->F), size = norm(work->F, m);
  for (int n = 0; n < NEWTON_STEPS && !(missed <= work->of->tolerance); n++) {
    newton_rows(work, work->x, work->c);
    if (!solve_dense(work)) return missed;
    ++*iterations;
    double share = 1.0, found = INFINITY, reached = INFINITY;
    for (int h = 0; h < HALVINGS; h++, share *= 0.5) {
      for (int i = 0; i < m; i++) work->trial[i] = work->x[i] + share * work->step[i];
      reached = natural_map(work, work->trial, work->c, work->F);
      found = norm(work->F, m);
      if (found < (1.0 - 0.1 * share) * size || reached <= work->of->tolerance) break;
    }
    if (!(found < size) && !(reached <= work->of->tolerance)) {
      natural_map(work, work->x, work->c, work->F);
      return missed;
    }
    memcpy(work->x, work->trial, m * sizeof(double));
    missed = reached;
    size = found;
  }
  return missed;
}

/* Factor A + diagonal into L L'. */
static void factor(Work *work, double diagonal)
{
  int m = work->of->m;
  double *L = work->factor;
  for (int i = 0; i < m; i++)
    for (int j = 0; j <= i; j++) {
      double sum = work->A[(size_t)i * m + j] + (i == j ? diagonal : 0.0);
      for (int k = 0; k < j; k++) sum -= L[(size_t)i * m + k] * L[(size_t)j * m + k];
      L[(size_t)i * m + j] = i == j ? sqrt(fmax(sum, 1e-300)) : sum / L[(size_t)j * m + j];
    }
}

static void solve_factored(const Work *work, double *b)
{
  int m = work->of->m;
  const double *L = work->factor;
  for (int i = 0; i < m; i++) {
    for (int k = 0; k < i; k++) b[i] -= L[(size_t)i * m + k] * b[k];
    b[i] /= L[(size_t)i * m + i];
  }
  for (int i = m - 1; i >= 0; i--) {
    for (int k = i + 1; k < m; k++) b[i] -= L[(size_t)k * m + i] * b[k];
    b[i] /= L[(size_t)i * m + i];
  }
}

/* A round of ADMM: trial is x of the paper, y what is in the sets, z the velocities. How far the
   first two are apart, over how far the second moved, is for the weight. */
static double admm_round(Work *work, double weight)
{
  const ConeProblem *problem = work->of;
  int m = problem->m;
  double apart = 0.0, moved = 0.0;
  for (int n = 0; n < ROUND; n++) {
    for (int i = 0; i < m; i++)
      work->right[i] = work->z[i] + weight * work->y[i] + DAMPING * work->trial[i] - work->g[i];
    for (int b = 0; b < problem->blocks; b++)
      if (problem->kind[b] == 'c' && problem->coulomb) {
        int i = problem->first[b];
        work->right[i + 2] -= work->parameter[b] * length2(work->z + i);
      }
    memcpy(work->trial, work->right, m * sizeof(double));
    solve_factored(work, work->trial);
    memcpy(work->before, work->y, m * sizeof(double));
    for (int b = 0; b < problem->blocks; b++) {
      double p[3];
      int i = problem->first[b];
      for (int k = i; k < problem->first[b + 1]; k++)
        p[k - i] = work->trial[k] - work->z[k] / weight;
      project(problem->kind[b], work->parameter[b], p, work->y + i);
    }
    apart = moved = 0.0;
    for (int i = 0; i < m; i++) {
      work->z[i] -= weight * (work->trial[i] - work->y[i]);
      apart = fmax(apart, fabs(work->trial[i] - work->y[i]));
      moved = fmax(moved, weight * fabs(work->y[i] - work->before[i]));
    }
  }
  return apart / fmax(moved, 1e-300);
}

/* Solve from x; what velocities miss. The best point of all that were seen is in y. */
static double solve(Work *work, long *iterations)
{
  const ConeProblem *problem = work->of;
  int m = problem->m;
  double *best = work->y, weight = 0.1;
  double *start = work->trial;
  *iterations = 0;
  memcpy(start, work->x, m * sizeof(double));
  work->regularization = REGULARIZATION;
  double missed = newton(work, iterations), least = missed;
  if (missed <= problem->tolerance) {
    memcpy(best, work->x, m * sizeof(double));
    return missed;
  }
  work->regularization = STRONGER;
  double *kept = work->before + m; /* the best so far; before is of twice the size */
  memcpy(kept, work->x, m * sizeof(double));
  /* ADMM begins with the impulses that Newton has come to, and their velocities. */
  memcpy(work->trial, work->x, m * sizeof(double));
  for (int b = 0; b < problem->blocks; b++) {
    int i = problem->first[b];
    project(problem->kind[b], work->parameter[b], work->x + i, work->y + i);
  }
  multiply(work->A, work->y, work->g, m, work->z);
  factor(work, weight + DAMPING);
  while (*iterations < problem->most) {
    double ratio = admm_round(work, weight);
    *iterations += ROUND;
    memcpy(work->right + m, work->trial, m * sizeof(double)); /* Newton has its own */
    memcpy(work->x, work->y, m * sizeof(double));
    missed = newton(work, iterations);
    if (missed < least) {
      least = missed;
      memcpy(kept, work->x, m * sizeof(double));
    }
    if (missed <= problem->tolerance) break;
    memcpy(work->trial, work->right + m, m * sizeof(double));
    if (ratio > 10.0 || ratio < 0.1) {
      double changed = weight * fmin(fmax(sqrt(ratio), 0.1), 10.0);
      weight = fmin(fmax(changed, 1e-7), 1e5);
      factor(work, weight + DAMPING);
    }
  }
  memcpy(best, kept, m * sizeof(double));
  return least;
}

/* Scale a problem, solve it, and scale back. */
static double solve_scaled(Work *work, const double *A, const double *g, const double *parameter,
                           double *x, long *iterations)
{
  const ConeProblem *problem = work->of;
  int m = problem->m;
  for (int b = 0; b < problem->blocks; b++) {
    int i = problem->first[b], end = problem->first[b + 1];
    double sum = 0.0;
    for (int k = i; k < end; k++) sum += A[(size_t)k * m + k];
    double scale = sum > 0.0 ? sqrt((end - i) / sum) : 1.0;
    for (int k = i; k < end; k++) work->scale[k] = scale;
    work->parameter[b] = problem->kind[b] == 'b' ? parameter[b] / scale : parameter[b];
  }
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < m; j++)
      work->A[(size_t)i * m + j] = work->scale[i] * A[(size_t)i * m + j] * work->scale[j];
    work->g[i] = work->scale[i] * g[i];
    work->x[i] = x[i] / work->scale[i];
  }
  double missed = solve(work, iterations);
  for (int i = 0; i < m; i++) x[i] = work->y[i] * work->scale[i];
  return missed;
}

size_t cone_numbers(int m, int blocks)
{
  return 3 * (size_t)m * m + 13 * (size_t)m + blocks + 1;
}

double solve_cone_problem(const ConeProblem *problem, const double *A, const double *g,
                          const double *parameter, double *x, long *iterations, double *memory)
{
  size_t m = problem->m;
  Work work = {.of = problem, .A = memory, .factor = memory + m * m, .lu = memory + 2 * m * m};
  double **vectors[] = {&work.g, &work.scale, &work.x,    &work.c,    &work.F,
                        &work.y, &work.z,     &work.step, &work.trial};
  double *next = work.lu + m * m;
  for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++, next += m) *vectors[i] = next;
  work.before = next; /* of twice the size, as right: the second half is kept for longer */
  work.right = next + 2 * m;
  work.parameter = next + 4 * m;
  return solve_scaled(&work, A, g, parameter, x, iterations);
}

int cone_rows(const char *kinds, ptrdiff_t blocks, int *first)
{
  int m = 0;
  for (ptrdiff_t b = 0; b < blocks; b++) {
    if (strchr("epbc", kinds[b]) == NULL) return -1;
    first[b] = m;
    m += kinds[b] == 'c' ? 3 : 1;
    if (m > MAX_CONE_ROWS) return -1;
  }
  first[blocks] = m;
  return m;
}
