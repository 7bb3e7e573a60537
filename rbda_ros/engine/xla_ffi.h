/* The part of XLA's foreign-function interface, version 0, that a handler needs.

   These are facts of its binary interface: JAX is needed neither to build nor to install us. Every
   record begins with its size, and new fields come at the end; test_xla_ffi.py compares the places
   of all fields with the header that JAX has. */
#ifndef RBDA_ROS_XLA_FFI_H
#define RBDA_ROS_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

enum { XLA_MAJOR = 0, XLA_MINOR = 3 };
enum { XLA_METADATA = 1 };                            /* types of extensions */
enum { XLA_S64 = 5, XLA_F32 = 11, XLA_F64 = 12 };     /* types of numbers */
enum { XLA_SCALAR = 3 };                              /* types of attributes */
enum { XLA_EXECUTE = 3 };                             /* stages */
enum { XLA_INVALID_ARGUMENT = 3, XLA_INTERNAL = 13 }; /* codes of errors */

typedef struct XlaError XlaError;

typedef struct XlaExtension {
  size_t size;
  int type;
  struct XlaExtension *next;
} XlaExtension;

typedef struct {
  size_t size;
  XlaExtension *extension;
  int major, minor;
} XlaVersion;

typedef struct {
  size_t size;
  XlaExtension *extension;
  const char *message;
  int code;
} XlaErrorArgs;

typedef struct {
  size_t size;
  XlaExtension *extension;
  XlaVersion version;
  const void *internal;
  XlaError *(*create_error)(XlaErrorArgs *args);
} XlaApi;

typedef struct {
  size_t size;
  XlaVersion version;
  uint32_t traits;
} XlaMetadata;

typedef struct {
  XlaExtension base;
  XlaMetadata *metadata;
} XlaMetadataExtension;

typedef struct {
  size_t size;
  XlaExtension *extension;
  int type;
  void *data;
  int64_t rank;
  int64_t *dims;
} XlaBuffer;

typedef struct {
  int type;
  void *value;
} XlaScalar;

typedef struct {
  size_t struct_size;
  XlaExtension *extension;
  int64_t size;
  int *types;
  void **args;
} XlaArgs;

typedef struct {
  size_t struct_size;
  XlaExtension *extension;
  int64_t size;
  int *types;
  void **rets;
} XlaRets;

typedef struct {
  size_t struct_size;
  XlaExtension *extension;
  int64_t size;
  int *types;
  void **names;
  void **attrs;
} XlaAttrs;

typedef struct {
  size_t size;
  XlaExtension *extension;
  const XlaApi *api;
  void *context;
  int stage;
  XlaArgs args;
  XlaRets rets;
  XlaAttrs attrs;
} XlaCallFrame;

#endif
