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
   singular: contacts may be redundant.

   Many contacts of few bodies have A = J R J' of low rank n, with J from velocities of the bodies
   to those of the contacts. Linear equations are then solved in n unknowns (Woodbury). */
#include "cones.h"

#include <math.h>
#include <string.h>

enum { ROUND = 10, NEWTON_STEPS = 20, HALVINGS = 6 };

/* Added to the diagonal of Newton's matrix, relative to it: the first value in the first search,
   the second in all others. A larger value takes more steps, and tolerates larger rounding errors
   of redundant contacts. If A has low rank, Newton divides by it: then it is always the second. */
static const double REGULARIZATION = 1e-11, STRONGER = 1e-8;
static const double DAMPING = 1e-6; /* of the ADMM: keeps forces that are not determined */

/* One problem, scaled so that the diagonal of A is one on average in each block. */
typedef struct {
  const ConeProblem *of;
  double *A, *g, *parameter, *scale; /* A: or J; scale: of each row */
  double *x, *c, *F, *y, *z, *before, *right, *step, *trial;
  double *factor, *lu, *D, *W; /* D, W: of each block (3 x 3) */
  double *t, *u;               /* of low rank: (n,) */
  double regularization, diagonal;
} Work;

static double length2(const double *t)
{
  return sqrt(t[0] * t[0] + t[1] * t[1]);
}

static double clamp(double x, double bound)
{
  return x > bound ? bound : x < -bound ? -bound : x;
}

/* Where a point p lies: inside the cone (1), where the apex is nearest (-1), or elsewhere (0). */
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

/* y = B x for B (rows x columns). */
static void product(const double *B, const double *x, int rows, int columns, double *y)
{
  for (int i = 0; i < rows; i++) {
    double sum = 0.0;
    for (int j = 0; j < columns; j++) sum += B[(size_t)i * columns + j] * x[j];
    y[i] = sum;
  }
}

/* y = J' x of low rank. */
static void gathered(const Work *work, const double *x, double *y)
{
  int n = work->of->rank;
  memset(y, 0, n * sizeof(double));
  for (int i = 0; i < work->of->m; i++)
    for (int j = 0; j < n; j++) y[j] += x[i] * work->A[(size_t)i * n + j];
}

/* c = A x + g. */
static void velocities(const Work *work, const double *x, double *c)
{
  int m = work->of->m, n = work->of->rank;
  if (n == 0) {
    product(work->A, x, m, m, c);
  } else {
    gathered(work, x, work->t);
    product(work->of->R, work->t, n, n, work->u);
    product(work->A, work->u, m, n, c);
  }
  for (int i = 0; i < m; i++) c[i] += work->g[i];
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

/* F = x - P(x - c - s); returns the largest error of a velocity, in the units of the caller. */
static double natural_map(const Work *work, const double *x, double *c, double *F)
{
  const ConeProblem *problem = work->of;
  double worst = 0.0;
  velocities(work, x, c);
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

/* Newton's equations (D + W A) step = right, in blocks of D and W: of F for sliding contacts, else
   of the condition that F = 0 amounts to. */
static void newton_blocks(Work *work, const double *x, const double *c)
{
  const ConeProblem *problem = work->of;
  for (int b = 0; b < problem->blocks; b++) {
    double p[3], mu = work->parameter[b], *D = work->D + 9 * b, *W = work->W + 9 * b;
    int i = point_of(problem, b, x, c, mu, p), rows = problem->first[b + 1] - i;
    char kind = problem->kind[b];
    int sticks = kind == 'e' || (kind == 'p' && p[0] > 0.0) || (kind == 'b' && fabs(p[0]) < mu);
    int side = kind == 'c' ? side_of(p, mu) : sticks ? 1 : -1;
    memset(D, 0, 9 * sizeof(double));
    memset(W, 0, 9 * sizeof(double));
    for (int k = 0; k < rows; k++) {
      if (side > 0) { /* c = 0 */
        W[4 * k] = 1.0;
        D[4 * k] = work->regularization;
        work->right[i + k] = -c[i + k];
      } else if (side < 0) { /* x at the end of its range */
        D[4 * k] = 1.0;
        work->right[i + k] = (kind == 'b' ? clamp(p[0], mu) : 0.0) - x[i + k];
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
      for (int l = 0; l < 3; l++) {
        W[3 * k + l] = DP[k][l] + (l < 2 ? DP[k][2] * d[l] : 0.0);
        D[3 * k + l] = (k == l) - DP[k][l] + (k == l) * work->regularization;
      }
      work->right[i + k] = -work->F[i + k];
    }
  }
}

/* Solve B x = b for columns of b (m x columns) by elimination with row pivots. b becomes x, and B
   (m x m, in rows of a stride) is overwritten. Returns 0 if B is singular. */
static int solve_dense(double *B, int m, int stride, double *b, int columns)
{
  for (int k = 0; k < m; k++) {
    int best = k;
    for (int i = k + 1; i < m; i++)
      if (fabs(B[(size_t)i * stride + k]) > fabs(B[(size_t)best * stride + k])) best = i;
    double pivot = B[(size_t)best * stride + k];
    if (!(fabs(pivot) > 1e-300) || !isfinite(pivot)) return 0;
    if (best != k) {
      for (int j = k; j < m; j++) {
        double kept = B[(size_t)k * stride + j];
        B[(size_t)k * stride + j] = B[(size_t)best * stride + j];
        B[(size_t)best * stride + j] = kept;
      }
      for (int j = 0; j < columns; j++) {
        double kept = b[(size_t)k * columns + j];
        b[(size_t)k * columns + j] = b[(size_t)best * columns + j];
        b[(size_t)best * columns + j] = kept;
      }
    }
    for (int i = k + 1; i < m; i++) {
      double share = B[(size_t)i * stride + k] / pivot;
      if (share == 0.0) continue;
      for (int j = k + 1; j < m; j++)
        B[(size_t)i * stride + j] -= share * B[(size_t)k * stride + j];
      for (int j = 0; j < columns; j++)
        b[(size_t)i * columns + j] -= share * b[(size_t)k * columns + j];
    }
  }
  for (int i = m - 1; i >= 0; i--)
    for (int j = 0; j < columns; j++) {
      double sum = b[(size_t)i * columns + j];
      for (int k = i + 1; k < m; k++) sum -= B[(size_t)i * stride + k] * b[(size_t)k * columns + j];
      b[(size_t)i * columns + j] = sum / B[(size_t)i * stride + i];
    }
  return 1;
}

/* Solve (D + W A) step = right. Returns 0 if the matrix is singular. */
static int dense_step(Work *work)
{
  const ConeProblem *problem = work->of;
  int m = problem->m;
  memset(work->lu, 0, (size_t)m * m * sizeof(double));
  for (int b = 0; b < problem->blocks; b++) {
    const double *D = work->D + 9 * b, *W = work->W + 9 * b;
    int i = problem->first[b], rows = problem->first[b + 1] - i;
    for (int k = 0; k < rows; k++) {
      double *row = work->lu + (size_t)(i + k) * m;
      for (int l = 0; l < rows; l++) {
        const double *of_A = work->A + (size_t)(i + l) * m;
        if (W[3 * k + l] != 0.0)
          for (int j = 0; j < m; j++) row[j] += W[3 * k + l] * of_A[j];
        row[i + l] += D[3 * k + l];
      }
    }
  }
  memcpy(work->step, work->right, m * sizeof(double));
  return solve_dense(work->lu, m, m, work->step, 1);
}

/* The same for A of low rank: with P = D^-1 W and u = R J' step,
   step = D^-1 right - P J u and (1 + R J' P J) u = R J' D^-1 right. */
static int low_rank_step(Work *work)
{
  const ConeProblem *problem = work->of;
  int n = problem->rank;
  double *K = work->lu, *B = K + (size_t)n * n, *of_u = B + (size_t)n * n;
  memset(K, 0, (size_t)n * n * sizeof(double));
  for (int b = 0; b < problem->blocks; b++) {
    double D[9], *W = work->W + 9 * b, joined[12];
    int i = problem->first[b], rows = problem->first[b + 1] - i;
    memcpy(D, work->D + 9 * b, sizeof D);
    for (int k = 0; k < rows; k++) {
      for (int l = 0; l < rows; l++) joined[k * (rows + 1) + l] = W[3 * k + l];
      joined[k * (rows + 1) + rows] = work->right[i + k];
    }
    if (!solve_dense(D, rows, 3, joined, rows + 1)) return 0;
    for (int k = 0; k < rows; k++) {
      memset(of_u, 0, n * sizeof(double)); /* a row of P J */
      for (int l = 0; l < rows; l++) {
        W[3 * k + l] = joined[k * (rows + 1) + l];
        const double *J = work->A + (size_t)(i + l) * n;
        if (W[3 * k + l] != 0.0)
          for (int j = 0; j < n; j++) of_u[j] += W[3 * k + l] * J[j];
      }
      work->step[i + k] = joined[k * (rows + 1) + rows];
      const double *J = work->A + (size_t)(i + k) * n;
      for (int j = 0; j < n; j++)
        if (J[j] != 0.0)
          for (int l = 0; l < n; l++) K[j * n + l] += J[j] * of_u[l];
    }
  }
  gathered(work, work->step, work->t);
  product(problem->R, work->t, n, n, work->u);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double sum = i == j;
      for (int k = 0; k < n; k++) sum += problem->R[i * n + k] * K[k * n + j];
      B[i * n + j] = sum;
    }
  if (!solve_dense(B, n, n, work->u, 1)) return 0;
  for (int b = 0; b < problem->blocks; b++) {
    double moved[3];
    int i = problem->first[b], rows = problem->first[b + 1] - i;
    product(work->A + (size_t)i * n, work->u, rows, n, moved);
    for (int k = 0; k < rows; k++)
      for (int l = 0; l < rows; l++) work->step[i + k] -= work->W[9 * b + 3 * k + l] * moved[l];
  }
  return 1;
}

static double norm(const double *x, int m)
{
  double sum = 0.0;
  for (int i = 0; i < m; i++) sum += x[i] * x[i];
  return sqrt(sum);
}

/* Newton steps from x, each halved until F becomes smaller; returns the largest error of a velocity
   at the end. */
static double newton(Work *work, long *iterations)
{
  int m = work->of->m;
  double missed = natural_map(work, work->x, work->c, work->F), size = norm(work->F, m);
  for (int n = 0; n < NEWTON_STEPS && !(missed <= work->of->tolerance); n++) {
    newton_blocks(work, work->x, work->c);
    if (!(work->of->rank ? low_rank_step(work) : dense_step(work))) return missed;
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

/* Factor A + diagonal into L L'; for A of low rank compute (diagonal + R J' J)^-1 R instead. */
static void factor(Work *work, double diagonal)
{
  int m = work->of->m, n = work->of->rank;
  double *L = work->factor;
  if (n > 0) {
    double *B = work->lu, *G = B + (size_t)n * n;
    memset(G, 0, (size_t)n * n * sizeof(double));
    for (int i = 0; i < m; i++)
      for (int j = 0; j < n; j++)
        for (int k = 0; k < n; k++)
          G[j * n + k] += work->A[(size_t)i * n + j] * work->A[(size_t)i * n + k];
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        B[i * n + j] = i == j ? diagonal : 0.0;
        for (int k = 0; k < n; k++) B[i * n + j] += work->of->R[i * n + k] * G[k * n + j];
      }
    memcpy(L, work->of->R, (size_t)n * n * sizeof(double));
    if (!solve_dense(B, n, n, L, n)) memset(L, 0, (size_t)n * n * sizeof(double));
    work->diagonal = diagonal;
    return;
  }
  for (int i = 0; i < m; i++)
    for (int j = 0; j <= i; j++) {
      double sum = work->A[(size_t)i * m + j] + (i == j ? diagonal : 0.0);
      for (int k = 0; k < j; k++) sum -= L[(size_t)i * m + k] * L[(size_t)j * m + k];
      L[(size_t)i * m + j] = i == j ? sqrt(fmax(sum, 1e-300)) : sum / L[(size_t)j * m + j];
    }
}

static void solve_factored(const Work *work, double *b)
{
  int m = work->of->m, n = work->of->rank;
  const double *L = work->factor;
  if (n > 0) {
    gathered(work, b, work->t);
    product(L, work->t, n, n, work->u);
    for (int i = 0; i < m; i++) {
      for (int j = 0; j < n; j++) b[i] -= work->A[(size_t)i * n + j] * work->u[j];
      b[i] /= work->diagonal;
    }
    return;
  }
  for (int i = 0; i < m; i++) {
    for (int k = 0; k < i; k++) b[i] -= L[(size_t)i * m + k] * b[k];
    b[i] /= L[(size_t)i * m + i];
  }
  for (int i = m - 1; i >= 0; i--) {
    for (int k = i + 1; k < m; k++) b[i] -= L[(size_t)k * m + i] * b[k];
    b[i] /= L[(size_t)i * m + i];
  }
}

/* ROUND iterations of ADMM: `trial` is x of the paper, y its projection on the sets, z the
   velocities. Returns the distance of the first two over the last change of y, which the weight
   follows. */
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

/* Solve from x, and leave the best point found in y; returns the largest error of a velocity. */
static double solve(Work *work, long *iterations)
{
  const ConeProblem *problem = work->of;
  int m = problem->m;
  double *best = work->y, weight = 0.1;
  *iterations = 0;
  work->regularization = problem->rank ? STRONGER : REGULARIZATION;
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
  velocities(work, work->y, work->z);
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

/* Entry k of the diagonal of A of low rank. */
static double diagonal_of(const ConeProblem *problem, int k)
{
  int n = problem->rank;
  const double *J = problem->J + (size_t)k * n;
  double sum = 0.0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) sum += J[i] * problem->R[i * n + j] * J[j];
  return sum;
}

/* Scale a problem, solve it, and scale back. */
static double solve_scaled(Work *work, const double *A, const double *g, const double *parameter,
                           double *x, long *iterations)
{
  const ConeProblem *problem = work->of;
  int m = problem->m, n = problem->rank;
  for (int b = 0; b < problem->blocks; b++) {
    int i = problem->first[b], end = problem->first[b + 1];
    double sum = 0.0;
    for (int k = i; k < end; k++) sum += n ? diagonal_of(problem, k) : A[(size_t)k * m + k];
    double scale = sum > 0.0 ? sqrt((end - i) / sum) : 1.0;
    for (int k = i; k < end; k++) work->scale[k] = scale;
    work->parameter[b] = problem->kind[b] == 'b' ? parameter[b] / scale : parameter[b];
  }
  for (int i = 0; i < m; i++) {
    for (int j = 0; j < n; j++)
      work->A[(size_t)i * n + j] = work->scale[i] * problem->J[(size_t)i * n + j];
    for (int j = 0; n == 0 && j < m; j++)
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
  return 3 * (size_t)m * m + 15 * (size_t)m + 19 * (size_t)blocks + 1;
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
  work.D = work.parameter + problem->blocks;
  work.W = work.D + 9 * (size_t)problem->blocks;
  work.t = work.W + 9 * (size_t)problem->blocks; /* of m numbers each, more than their rank */
  work.u = work.t + m;
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
