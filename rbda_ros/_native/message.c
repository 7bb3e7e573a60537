#include "message.h"

#include <string.h>

#include "rcl/error_handling.h"

static const Py_ssize_t NUMBER = sizeof(double);

bool read_shape(held_t *held, PyObject *pattern, PyObject *mask, shape_t *shape)
{
  const Py_buffer *view = hold(held, pattern, PyBUF_SIMPLE);
  if (view == NULL) return false;
  const Py_buffer *masked = hold(held, mask, PyBUF_SIMPLE);
  if (masked == NULL) return false;
  shape->pattern = view->buf;
  shape->mask = masked->buf;
  shape->compared = view->len;
  return fits(masked->len == view->len && view->len <= shape->size
                  && shape->size >= STAMP_AT + STAMP_SIZE,
              "the mask of a form");
}

bool read_message(held_t *held, PyObject *given, message_t *message)
{
  PyObject *data, *parts;
  unsigned long long publisher;
  int stamped, optional;
  if (!PyArg_ParseTuple(given, "KOppiO!", &publisher, &data, &stamped, &optional, &message->when,
                        &PyTuple_Type, &parts))
    return false;
  message->publisher = (rcl_publisher_t *)(uintptr_t)publisher;
  message->stamped = stamped;
  message->optional = optional;
  if (data == Py_None) return fits(optional, "a message without bytes");
  const Py_buffer *view = hold(held, data, PyBUF_WRITABLE);
  if (view == NULL) return false;
  message->data = view->buf;
  message->size = view->len;
  message->count = (int)PyTuple_GET_SIZE(parts);
  if (!fits(message->count <= MOST_PARTS && (!stamped || view->len >= STAMP_AT + STAMP_SIZE),
            "a message"))
    return false;
  for (int k = 0; k < message->count; k++) {
    part_t *part = &message->parts[k];
    PyObject *values, *order;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(parts, k), "OOn", &values, &order, &part->at)
        || !hold_vector(held, values, &part->values)
        || !hold_order(held, order, part->values.count, &part->order)
        || !fits(part->at >= 0 && part->at + NUMBER * part->order.count <= message->size,
                 "a part of a message"))
      return false;
  }
  return true;
}

bool has_shape(const shape_t *shape, const uint8_t *data, Py_ssize_t size)
{
  if (shape->size != size) return false;
  uint8_t differs = 0;
  for (Py_ssize_t i = 0; i < shape->compared; i++)
    differs |= (uint8_t)((data[i] ^ shape->pattern[i]) & shape->mask[i]);
  return !differs;
}

int64_t stamp_of(const uint8_t *data)
{
  int32_t seconds;
  uint32_t nanoseconds;
  memcpy(&seconds, data + STAMP_AT, sizeof seconds);
  memcpy(&nanoseconds, data + STAMP_AT + sizeof seconds, sizeof nanoseconds);
  return seconds * INT64_C(1000000000) + nanoseconds;
}

void gather(const uint8_t *data, order_t order, double *to)
{
  for (Py_ssize_t k = 0; k < order.count; k++)
    memcpy(&to[k], data + NUMBER * order.at[k], sizeof(double));
}

bool publish(const message_t *message, const uint8_t *like)
{
  if (message->stamped) memcpy(message->data + STAMP_AT, like + STAMP_AT, (size_t)STAMP_SIZE);
  for (int k = 0; k < message->count; k++) {
    const part_t *part = &message->parts[k];
    uint8_t *to = message->data + part->at;
    for (Py_ssize_t i = 0; i < part->order.count; i++, to += NUMBER)
      memcpy(to, &part->values.at[part->order.at[i]], sizeof(double));
  }
  rcl_serialized_message_t bytes = rmw_get_zero_initialized_serialized_message();
  bytes.buffer = message->data;
  bytes.buffer_length = bytes.buffer_capacity = (size_t)message->size;
  bytes.allocator = rcutils_get_default_allocator();
  if (rcl_publish_serialized_message(message->publisher, &bytes, NULL) == RCL_RET_OK) return true;
  rcl_reset_error();
  return false;
}
