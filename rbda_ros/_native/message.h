/* Messages as bytes: which ones are known, and how answers are written and sent. */
#ifndef RBDA_ROS_MESSAGE_H
#define RBDA_ROS_MESSAGE_H

#include "held.h"

#include "rcl/publisher.h"

/* Where the stamp is: after four bytes that say how the rest is encoded. */
enum { STAMP_AT = 4, STAMP_SIZE = 8 };
enum { MOST_PARTS = 3 };

/* Messages that differ only in their numbers from one that Python has read. */
typedef struct {
  const uint8_t *pattern, *mask; /* bytes that are the same, where the mask is not zero */
  Py_ssize_t compared;           /* bytes of these */
  Py_ssize_t size;               /* of the message */
} shape_t;

/* Numbers that go into a message. */
typedef struct {
  vector_t values;
  order_t order;
  Py_ssize_t at;
} part_t;

enum { ALWAYS, WITHOUT_EFFORTS, WITH_EFFORTS };

/* A message that is sent for every one that is answered. */
typedef struct {
  rcl_publisher_t *publisher;
  uint8_t *data; /* NULL where Python must make it */
  Py_ssize_t size;
  bool stamped;  /* with the stamp of the one that it answers */
  bool optional; /* not sent unless somebody listens */
  int when;      /* sent ALWAYS, or for states without efforts, or with them */
  part_t parts[MOST_PARTS];
  int count;
} message_t;

/* From tuples of Python; false with an exception. */
bool read_shape(held_t *held, PyObject *pattern, PyObject *mask, shape_t *shape);
bool read_message(held_t *held, PyObject *given, message_t *message);

/* Without the interpreter. */
bool has_shape(const shape_t *shape, const uint8_t *data, Py_ssize_t size);
int64_t stamp_of(const uint8_t *data);
/* Numbers of a message, which stand at multiples of four. */
void gather(const uint8_t *data, order_t order, double *to);
bool publish(const message_t *message, const uint8_t *like);

#endif
