/* Types and functions that the parts of rbda_ros.engine.core share. The interpreter lock is held,
   except while rows of a batch are evaluated. */
#ifndef RBDA_ROS_ENGINE_H
#define RBDA_ROS_ENGINE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL rbda_ros_engine_array_api
#ifndef RBDA_ROS_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <structmember.h>

#include "loop_rules.h"

#include <stdatomic.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__)      \
    && !defined(__SANITIZE_ADDRESS__)
#define CLONES(...) __attribute__((target_clones(__VA_ARGS__, "default")))
#else
#define CLONES(...)
#endif
#define WIDE CLONES("avx2")

/* Four numbers, as the compiler handles them on any processor. */
typedef double Four __attribute__((vector_size(32), aligned(8), may_alias));

enum { MAX_PORTS = 16, MAX_SLOTS = 24, MAX_ARGUMENTS = 12, MAX_METHODS = 64, MAX_DIMENSIONS = 3 };

/* core.c: Rejection(status, row, value), which is returned in place of a result. */
extern PyTypeObject *rejection_type;
PyObject *reject(Status status, npy_intp row);
PyObject *reject_value(Status status, npy_intp row, double value);

static inline int is_rejection(PyObject *answer)
{
  return Py_TYPE(answer) == rejection_type;
}

/* frictional_step.c: functions of the module, described in core.c. */
PyObject *solve_cones(PyObject *self, PyObject *arguments);
PyObject *frictional_steps(PyObject *self, PyObject *arguments);
PyObject *contact_biases(PyObject *self, PyObject *arguments);
PyObject *near_limits(PyObject *self, PyObject *arguments);
/* continuation_call.c: what the health of a kernel means. */
PyObject *judge_closing(PyObject *self, PyObject *arguments);
/* xla_call.c: the target that compiled JAX code calls. */
PyObject *xla_handler(PyObject *module, PyObject *arguments);

/* A compiled program: pointers to its inputs, then to its outputs. */
typedef void (*Evaluate)(double *const *ports);

/* Indices of a vector. Calls of a control loop find their memory out of the cache, so it is small
   and contiguous. */
typedef struct {
  npy_intp count;
  npy_intp *index;
} Indices;

/* The same for rows of numbers, one state each. */
typedef void (*EvaluateRows)(double *const *ports, const double *constants, double *memory,
                             int64_t rows);

/* Machine code for batches. */
typedef struct {
  EvaluateRows evaluate;
  EvaluateRows checked; /* the same with one more output: how many residuals and conditioning
                           numbers of the loops are good at the first input; or NULL */
  const double *constants;
  npy_intp memory;   /* numbers that it works in, at a multiple of 64 bytes */
  npy_intp together; /* rows that it takes at once */
  double instructions;
} BatchCode;

/* kernel.c: a program with inputs and outputs. CasADi's evaluator runs it until there is machine
   code, and again after that is withdrawn. Callers need not know which. */
typedef struct {
  PyObject_HEAD vectorcallfunc vectorcall;
  _Atomic(Evaluate) evaluate;       /* machine code; NULL while there is none */
  _Atomic(const BatchCode *) batch; /* machine code for batches; NULL while there is none */
  int inputs, ports;                /* how many are inputs, how many in all */
  npy_intp size[MAX_PORTS];
  double *own[MAX_PORTS];  /* arrays that `interpret` works on */
  PyObject *arrays;        /* tuple of these */
  PyObject *interpret;     /* callable: evaluates the arrays, and asks for machine code */
  PyObject *want_batch;    /* callable(rows): asks for machine code for batches */
  PyObject *convert;       /* callable: converts other arguments to vectors, or raises */
  PyObject *code;          /* list: keeps machine code alive, also withdrawn code */
  PyThread_type_lock lock; /* of the arrays: CasADi releases the interpreter lock */
} Kernel;

/* Evaluate by CasADi, with the interpreter lock; 0 with an exception. */
int interpret_kernel(Kernel *kernel, double *const *ports);

static inline int run_kernel(const Kernel *kernel, double *const *ports)
{
  Evaluate evaluate = atomic_load_explicit(&kernel->evaluate, memory_order_acquire);
  if (evaluate == NULL) return interpret_kernel((Kernel *)kernel, ports);
  evaluate(ports);
  return 1;
}

extern PyTypeObject KernelType;

/* Work memory of one call for checking and closing loops. */
typedef struct {
  double *phi, *conditioning; /* of all loops */
  double *next, *known;       /* (nq,) a position, and known entries of one */
  double residual, worst;     /* of the loops at the position that was read last */
} LoopMemory;

/* wrenches.c: links that wrenches may act on. */
typedef struct {
  PyObject *place; /* dict: index of each link by name; NULL before set_links */
  double *numbers; /* for each link: its body, R and p of its frame there */
  npy_intp bodies;
} Links;

/* array_pool.c: float64 arrays of one shape, for reuse. Two, because a program often keeps one result
   while it asks for the next. */
enum { MAX_POOLED = 2, MAX_LARGE = 8 };

typedef struct {
  PyObject *array[MAX_POOLED];
  int oldest;
} ArrayPool;

/* The same for large arrays of any shapes, the last used first. */
typedef struct {
  PyObject *array[MAX_LARGE];
} LargeArrayPool;

/* An uninitialized array: one of the pool that nobody else refers to, or a new one. */
PyObject *take_array(ArrayPool *pool, int dimensions, const npy_intp *shape);
void clear_pool(ArrayPool *pool);
/* Small arrays are always new. */
PyObject *take_large(LargeArrayPool *pool, int dimensions, const npy_intp *shape);
void clear_large_pool(LargeArrayPool *pool);

/* state_validator.c: positions and velocities of one robot, as users give them. */
typedef struct {
  PyObject_HEAD Py_ssize_t nq, nv, ny;
  double largest_position, largest, quaternion_tolerance, unit;
  double closed, nearby, on_loops, singular;
  double batch_near, batch_block;
  Indices independent;      /* entries of qd that are yd */
  Indices quaternions;      /* where they start in q */
  Indices curved;           /* entries of q that loops are not linear in */
  Indices known;            /* entries of q that are y; none where only q will do */
  Indices parts;            /* in how many parts known joints go where they are */
  double *home;             /* (nq,) where loops are closed from */
  PyTypeObject *state_type; /* of states that were checked before */
  PyObject *identity;       /* attribute `of` of the states of this robot */
  Kernel *closure;          /* y, guess -> q, phi; NULL while there is none */
  Kernel *loop_state;       /* q -> phi, conditioning; NULL without loops */
  int has_loops;
  Links links;
  PyTypeObject *wrenches_type; /* of wrenches on bodies, with an attribute `values` */
  LargeArrayPool pool;         /* for results of batches */
} StateValidator;

extern PyTypeObject StateValidatorType;

/* Check a position: `*q` points at nq numbers, the given ones or `into`. The same for velocities. */
Status read_position(const StateValidator *validator, LoopMemory *memory, PyObject *given,
                     double *into, const double **q);
Status read_velocity(const StateValidator *validator, PyObject *given, double *into,
                     const double **yd);
/* The position of a state, which was checked when it was made: a new reference; NULL where it is a
   state of another robot. */
PyObject *state_position(const StateValidator *validator, PyObject *state);
/* Normalize the quaternions of q; 0 if one is far from unit length. */
int normalize(const StateValidator *validator, double *q);
/* Whether the quaternions of a position, or of known entries of one, are near unit length. */
int all_units(const StateValidator *validator, const double *q);
int known_units(const StateValidator *validator, const Indices *entries, const double *values);
/* Close the loops by Newton steps from `start`, with the known `entries` of q at `values`. */
Status close_position(const StateValidator *validator, LoopMemory *memory, const Kernel *closure,
                      const Indices *entries, const double *values, const double *start, double *q);
/* The size of such memory, and the memory laid out in an array of this size. */
npy_intp loop_numbers(const StateValidator *validator);
LoopMemory loop_memory(const StateValidator *validator, double *numbers);

/* `*tau` points at ny forces on y: the given ones, or `into`, to which the kernel `forces` converts
   nv forces on all joints at q. Without the kernel (NULL) only forces on y are read. */
Status read_force(const StateValidator *validator, const Kernel *forces, PyObject *given,
                  const double *q, double *into, const double **tau);
/* Whether a kernel turns forces on all joints of this robot into forces on y. */
int turns_forces(const StateValidator *validator, PyObject *kernel);
/* Wrenches on bodies, from a dict of wrenches on links, or from wrenches on bodies. */
Status read_wrenches(const StateValidator *validator, PyObject *given, double *bodies,
                     npy_intp size);
/* The array of an object of `wrenches_type`: a new reference; NULL for other objects. */
PyObject *body_wrenches(const StateValidator *validator, PyObject *given);
/* A method of the validator, for rows of wrenches on one link. */
PyObject *add_wrenches(PyObject *self, PyObject *arguments);
int set_links(Links *links, PyObject *names, PyObject *numbers, npy_intp bodies);
void free_links(Links *links);

/* Whether a kernel closes the loops of this robot from `known` entries of q. */
int closes(const StateValidator *validator, PyObject *kernel, npy_intp known);

/* Copy a vector of indices, from `least` to below `limit`; 0 if it is not such a vector. */
int copy_indices(Indices *indices, PyObject *given, npy_intp least, npy_intp limit);

/* ltl_factorization.c: which coordinates of a mass matrix H (n x n) carry which. */
typedef struct {
  npy_intp n, stride, wide;
  double *work;                  /* n rows of `stride` numbers, zero at first; in those of
                                         `invert_ltl`, `wide` are of a coordinate and those above */
  npy_intp *start, *above;       /* coordinates that carry coordinate k, nearest first, from
                                         start[k] to start[k + 1] */
  npy_intp *start_below, *below; /* and those that it carries, the last first */
  npy_intp *order;               /* all coordinates, from the base to the tips */
} LtlFactorization;

/* Numbers behind the rows that `invert_ltl` takes: it reads four at a time. */
enum { READ_BEYOND = 3 };

/* For so many matrices to be solved for at once, the identity among them. To be freed with
   PyMem_Free; NULL where the parents are none, or memory is short. */
LtlFactorization *new_ltl(PyObject *parents, npy_intp n, int matrices);
/* L of H, in its lower half; 0 where it is singular. */
int factor_ltl(const LtlFactorization *ltl, double *H);
/* sign H^-1 B in the place of some B (n x n), and H^-1. */
void solve_ltl(const LtlFactorization *ltl, const double *L, double *const *B, int matrices,
               double sign, double *inverse);
/* X = H^-1 (n x n), symmetric to the last bit; 0 where H is singular. H is given by rows: of each
   coordinate, its entries with those that carry it, from the base on, and with itself. READ_BEYOND more
   are read, and not used. For an LTL of one matrix. */
int invert_ltl(const LtlFactorization *ltl, const double *H, double *X);

extern PyTypeObject OperationCallType;  /* operation_call.c */
extern PyTypeObject ClosureCallType;    /* closure_call.c */
extern PyTypeObject ContactCallType;    /* contact_call.c */
extern PyTypeObject MethodDispatchType; /* method_dispatch.c */
/* continuation_call.c, and the results of closing as constants of the module. */
extern PyTypeObject ContinuationCallType;
int add_closing_results(PyObject *module);

/* contact_call.c: for contacts whose wanted accelerations depend on the state. */
PyObject *iterate_contacts(PyObject *self, PyObject *arguments);

/* method_dispatch.c: an object that has such methods. */
typedef struct {
  PyObject_HEAD PyObject *call[MAX_METHODS];
} MethodTable;

extern PyTypeObject MethodTableType;

/* core.c: numpy's class of arrays and its float64, next to each other: reading them from numpy's
   tables would cost another cache miss. */
typedef struct {
  PyTypeObject *array;
  PyArray_Descr *number;
} Numpy;

extern Numpy numpy;

/* Whether an array has float64 numbers in native byte order. */
static inline int has_numbers(PyArrayObject *array)
{
  return PyArray_DESCR(array) == numpy.number
         || (PyArray_TYPE(array) == NPY_DOUBLE && PyArray_ISNOTSWAPPED(array));
}

/* The numbers of a contiguous float64 vector of this size; NULL for anything else. */
static inline double *vector_of(PyObject *object, npy_intp size)
{
  PyArrayObject *array = (PyArrayObject *)object;
  if (Py_TYPE(object) != numpy.array || PyArray_NDIM(array) != 1 || PyArray_DIM(array, 0) != size
      || !has_numbers(array) || !PyArray_CHKFLAGS(array, NPY_ARRAY_CARRAY_RO))
    return NULL;
  return PyArray_DATA(array);
}

/* The length of a vector; -1 for anything else. */
static inline npy_intp length_of(PyObject *object)
{
  PyArrayObject *array = (PyArrayObject *)object;
  return Py_TYPE(object) == numpy.array && PyArray_NDIM(array) == 1 ? PyArray_DIM(array, 0) : -1;
}

/* batch_evaluation.c: whether no magnitude exceeds `largest`, and none is NaN. */
int all_within(const double *numbers, npy_intp count, double largest);

/* operation_call.c: an object of a class with these values as its attributes, without a call of its
   `__init__`. */
PyObject *new_record(PyObject *type, PyObject *fields, PyObject *const *values);

static inline PyObject *new_vector(npy_intp size)
{
  return PyArray_SimpleNew(1, &size, NPY_DOUBLE);
}

#endif
