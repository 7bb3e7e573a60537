/* Methods at many states: rows of arrays, checked and evaluated block by block, so that what a
   block needs stays in the cache. The checks are those of `reader.c`, and what is not taken is
   left to the method as it is written, too. */
#include "rows.h"

enum { BLOCK = 64 }; /* rows at a time, as near as whole tiles of machine code come to it */

/* Numbers of rows (count, size) of a contiguous float64 array; NULL for all else. */
static const double *rows_of(PyObject *object, npy_intp *count, npy_intp *size)
{
  PyArrayObject *array = (PyArrayObject *)object;
  if (!PyArray_CheckExact(object) || PyArray_NDIM(array) != 2 || PyArray_TYPE(array) != NPY_DOUBLE
      || !PyArray_ISCARRAY_RO(array))
    return NULL;
  *count = PyArray_DIM(array, 0);
  *size = PyArray_DIM(array, 1);
  return PyArray_DATA(array);
}

/* Arguments. */

/* An argument that is one vector, checked now; 0 where it is none. */
static int take_single(Batch *batch, int i, PyObject *object, double *into)
{
  Reader *reader = batch->reader;
  Given *given = &batch->given[i];
  given->single = given->checked = 1;
  given->size = batch->call->slot[i].size;
  switch (batch->kinds[i]) {
  case 'q': /* with several results, those of q alone are no rows */
    if (batch->call->make != NULL || !read_position(reader, object, into, &given->numbers))
      return 0;
    break;
  case 'v':
    if (!read_velocity(reader, object, into, &given->numbers)) return 0;
    break;
  case 'w':
    given->numbers = into;
    return read_wrenches(reader, object, into, given->size);
  default:
    given->numbers = vector_of(object, given->size);
    if (given->numbers == NULL || !all_within(given->numbers, given->size, reader->largest))
      return 0;
  }
  return 1;
}

/* The rows of a state's position, which were checked when it was made: a new reference; NULL where
   they are none. */
static PyObject *state_rows(const Reader *reader, PyObject *state)
{
  PyObject *of = PyObject_GetAttrString(state, "of");
  PyObject *position = of == reader->identity ? PyObject_GetAttrString(state, "q") : NULL;
  Py_XDECREF(of);
  PyErr_Clear();
  return position;
}

/* Whether rows of this size are an argument of its kind; closes them where that is to be done. */
static int fits(Batch *batch, int i)
{
  Reader *reader = batch->reader;
  Given *given = &batch->given[i];
  npy_intp size = given->size;
  if (batch->kinds[i] == 'v') return size == reader->ny || size == reader->nv;
  if (batch->kinds[i] == 'f' && size != reader->ny) {
    batch->forces = batch->call->forces;
    return size == reader->nv && batch->forces != NULL;
  }
  if (batch->kinds[i] != 'q') return size == batch->call->slot[i].size;
  if (size == reader->nq) return 1;
  if (size != reader->known.count || reader->closure == NULL || given->checked) return 0;
  batch->motion = (Motion){.closure = (Kernel *)Py_NewRef((PyObject *)reader->closure),
                           .entries = &reader->known,
                           .rows = given->numbers,
                           .size = size,
                           .count = batch->count};
  return 1;
}

/* One argument: rows, as many as those before have, or one vector. */
static int take_argument(Batch *batch, int i, PyObject *object, double *single)
{
  Given *given = &batch->given[i];
  npy_intp count = 0;
  given->checked = batch->kinds[i] == 'q' && Py_TYPE(object) == batch->reader->state_type;
  given->keep = given->checked ? state_rows(batch->reader, object) : Py_NewRef(object);
  if (given->keep == NULL) return 0;
  given->numbers = rows_of(given->keep, &count, &given->size);
  if (given->numbers == NULL) return batch->call != NULL && take_single(batch, i, object, single);
  if (count < 1 || (batch->count && batch->count != count)) return 0;
  batch->count = count;
  return fits(batch, i);
}

/* Machine code of a kernel must be there; what it needs is counted. */
static int count_in(Batch *batch, const Kernel *kernel)
{
  const RowsCode *rows = &kernel->rows;
  if (rows->evaluate == NULL || kernel->withdrawn) return 0;
  batch->instructions += rows->instructions;
  if (batch->code_memory < rows->memory) batch->code_memory = rows->memory;
  batch->block = rows->together < BLOCK ? BLOCK / rows->together * rows->together : rows->together;
  return 1;
}

/* Whether loops are yet to be checked, and the first kernel can do it on its way. */
static int may_check_later(const Batch *batch)
{
  const CheckedCall *call = batch->call;
  if (call == NULL || !batch->reader->has_loops || *call->kinds != 'q' || batch->given[0].checked)
    return 0;
  const Step *step = &call->step[0];
  return step->kernel != NULL && step->slots[0] == 0 && step->kernel->rows.checked != NULL
         && step->kernel->ports < MOST_PORTS;
}

static int count_kernels(Batch *batch)
{
  const Reader *reader = batch->reader;
  batch->block = BLOCK;
  batch->instructions = (double)(reader->nq + reader->ny); /* to look at them */
  batch->checks_later = may_check_later(batch);
  if (reader->has_loops && !batch->checks_later
      && (reader->loop_state == NULL || !count_in(batch, reader->loop_state)))
    return 0;
  if (batch->motion.closure != NULL && !count_in(batch, batch->motion.closure)) return 0;
  if (batch->forces != NULL && !count_in(batch, batch->forces)) return 0;
  for (int k = 0; batch->call != NULL && k < batch->call->steps; k++)
    if (batch->call->step[k].kernel && !count_in(batch, batch->call->step[k].kernel)) return 0;
  if (batch->block > batch->count) batch->block = batch->count;
  return 1;
}

/* What Python calls. */

static void free_batch(Batch *batch)
{
  for (int i = 0; i < batch->arguments; i++) Py_XDECREF(batch->given[i].keep);
  free_motion(&batch->motion);
  PyMem_Free(batch->singles);
}

static PyObject *new_rows(Reader *reader, npy_intp count, const Result *result)
{
  npy_intp shape[] = {count, result->shape[0], result->shape[1]};
  return take_large(&reader->spare, 1 + result->dimensions, shape);
}

static int take_arguments(Batch *batch, PyObject *const *given)
{
  const CheckedCall *call = batch->call;
  npy_intp numbers = 1;
  for (int i = 0; i < call->arguments; i++) numbers += call->slot[i].size;
  double *single = batch->singles = PyMem_Malloc(numbers * sizeof *single);
  if (single == NULL) return 0;
  for (int i = 0; i < call->arguments; i++) {
    if (!take_argument(batch, i, given[i], single)) return 0;
    single += call->slot[i].size;
  }
  return batch->count > 0 && count_kernels(batch);
}

PyObject *call_with_rows(CheckedCall *call, PyObject *const *given)
{
  Batch batch = {
      .reader = call->reader, .call = call, .kinds = call->kinds, .arguments = call->arguments};
  PyObject *arrays[MOST_RESULTS] = {NULL}, *answer = NULL;
  double residual, worst;
  if (!take_arguments(&batch, given)) {
    answer = Py_NewRef(Py_None);
    goto end;
  }
  for (int i = 0; i < call->results; i++) {
    arrays[i] = new_rows(call->reader, batch.count, &call->result[i]);
    if (arrays[i] == NULL) goto end;
    batch.result[i] = PyArray_DATA((PyArrayObject *)arrays[i]);
  }
  answer = run_batch(&batch, evaluate_block, &residual, &worst) ? answer_of(call, arrays, NULL)
                                                                : Py_NewRef(Py_None);
end:
  for (int i = 0; i < call->results; i++) Py_XDECREF(arrays[i]);
  free_batch(&batch);
  return answer;
}

PyObject *check_rows(Reader *reader, PyObject *position, PyObject *velocity)
{
  PyObject *given[] = {position, velocity}, *arrays[2] = {NULL}, *answer = NULL;
  const Result result[] = {{0, 1, {reader->nq, 0}}, {1, 1, {reader->ny, 0}}};
  Batch batch = {.reader = reader, .kinds = "qv", .arguments = velocity == Py_None ? 1 : 2};
  double residual, worst;
  int good = 1;
  for (int i = 0; good && i < batch.arguments; i++) good = take_argument(&batch, i, given[i], NULL);
  good = good && count_kernels(&batch);
  for (int i = 0; good && i < 2; i++) {
    arrays[i] = i < batch.arguments ? new_rows(reader, batch.count, &result[i])
                                    : PyArray_ZEROS(1, &reader->ny, NPY_DOUBLE, 0);
    if (arrays[i] == NULL) goto end;
    batch.result[i] = PyArray_DATA((PyArrayObject *)arrays[i]);
  }
  if (good && run_batch(&batch, check_block, &residual, &worst))
    answer = Py_BuildValue("OOdd", arrays[0], arrays[1], residual, worst);
  else
    answer = Py_NewRef(Py_None);
end:
  Py_XDECREF(arrays[0]);
  Py_XDECREF(arrays[1]);
  free_batch(&batch);
  return answer;
}

PyObject *close_motion(Reader *reader, Kernel *closure, const Indices *entries, PyObject *given,
                       const double *guess)
{
  Batch batch = {.reader = reader};
  Motion *motion = &batch.motion;
  const Result result = {0, 1, {reader->nq, 0}};
  PyObject *answer = NULL;
  double residual, worst;
  motion->rows = rows_of(given, &motion->count, &motion->size);
  if (motion->rows == NULL || motion->count < 1
      || (motion->size != reader->nq && motion->size != entries->count)
      || !all_within(motion->rows, motion->count * motion->size, reader->largest_position))
    Py_RETURN_NONE;
  batch.count = motion->count;
  motion->entries = entries;
  motion->guess = guess;
  motion->closure = (Kernel *)Py_XNewRef((PyObject *)closure);
  if (!count_kernels(&batch))
    answer = Py_NewRef(Py_None);
  else if ((answer = new_rows(reader, batch.count, &result)) != NULL) {
    batch.result[0] = PyArray_DATA((PyArrayObject *)answer);
    if (!run_batch(&batch, close_block, &residual, &worst)) Py_SETREF(answer, Py_NewRef(Py_None));
  }
  free_batch(&batch);
  return answer;
}
