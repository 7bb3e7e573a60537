/* Messages as bytes: the common data representation (CDR) of DDS, read in either byte order and
 * written in that of little-endian machines, the only ones that this runs on.
 *
 * Four bytes tell the encoding; every number then stands at a multiple of its size, counted from
 * there. Readers check every bound and allocate nothing. */
#ifndef RBDA_ROS_CDR_H
#define RBDA_ROS_CDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STAMP_AT = 4, STAMP_SIZE = 8, FRAME_ID_AT = 12 };

/* A position in a message. Once a read fails, all later ones do. */
typedef struct {
  const uint8_t *data;
  size_t size, at;
  bool failed, swapped; /* swapped: the sender is a big-endian machine */
} cdr_reader_t;

typedef struct {
  const char *at; /* not terminated */
  size_t size;
} text_t;

/* Numbers inside a message; they may be unaligned. */
typedef struct {
  const uint8_t *at;
  size_t count;
  bool swapped;
} numbers_t;

typedef struct {
  int64_t stamp; /* [ns]; 0 where the message has none */
  text_t frame_id;
} header_t;

/* Begins to read; `failed` is set where the encoding is not plain CDR. */
cdr_reader_t cdr_begin(const uint8_t *data, size_t size);
uint32_t cdr_count(cdr_reader_t *reader);
text_t cdr_text(cdr_reader_t *reader);
numbers_t cdr_numbers(cdr_reader_t *reader);             /* a sequence of float64 */
numbers_t cdr_fixed(cdr_reader_t *reader, size_t count); /* float64 without a count before them */
header_t cdr_header(cdr_reader_t *reader);
double number_at(numbers_t numbers, size_t k);

/* sensor_msgs/JointState. */
typedef struct {
  int64_t stamp;
  size_t names_at, names_end; /* bytes that hold the number of names, and the names */
  uint32_t name_count;
  numbers_t position, velocity, effort;
} joint_state_t;
/* `names_end` is 0 where the names must be read; else where they are known to end. */
bool read_joint_state(const uint8_t *data, size_t size, size_t names_end, joint_state_t *state);
/* At the first of its names. */
cdr_reader_t begin_names(const uint8_t *data, const joint_state_t *state);

/* A message that is sent again and again with other numbers. */
typedef struct {
  uint8_t *data;
  size_t size;
  size_t fields[3]; /* where the numbers of each field begin; 0 for a field that is empty */
  size_t count;     /* numbers in each field */
} template_t;

enum { POSITION_FIELD = 1, VELOCITY_FIELD = 2, EFFORT_FIELD = 4 };

/* Each is false where there is no memory. A JointState of named joints with some of the fields; a
 * Float64MultiArray; a WrenchStamped. */
bool make_joint_state(template_t *made, const char *const *names, size_t count, int fields);
bool make_array(template_t *made, size_t count);
bool make_wrench(template_t *made, const char *frame_id);
void free_template(template_t *made);
void put_stamp(template_t *into, int64_t stamp);
/* Write one number of a field. */
void put_number(template_t *into, int field, size_t k, double value);

#endif
