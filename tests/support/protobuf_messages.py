"""Classes of Protobuf messages, made without protoc."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

VISIT = """
name: "visit.proto" package: "shop" syntax: "proto3"
message_type {
  name: "Other" field { name: "x" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
}
message_type {
  name: "Visit"
  field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
  field { name: "host" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "status" number: 3 type: TYPE_INT32 label: LABEL_OPTIONAL }
  field { name: "ratio" number: 4 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "single" number: 5 type: TYPE_FLOAT label: LABEL_OPTIONAL }
  field { name: "ok" number: 6 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "data" number: 7 type: TYPE_BYTES label: LABEL_OPTIONAL }
  field { name: "s32" number: 8 type: TYPE_SINT32 label: LABEL_OPTIONAL }
  field { name: "s64" number: 9 type: TYPE_SINT64 label: LABEL_OPTIONAL }
  field { name: "u32" number: 10 type: TYPE_UINT32 label: LABEL_OPTIONAL }
  field { name: "u64" number: 11 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  field { name: "f32" number: 12 type: TYPE_FIXED32 label: LABEL_OPTIONAL }
  field { name: "f64" number: 13 type: TYPE_FIXED64 label: LABEL_OPTIONAL }
  field { name: "sf32" number: 14 type: TYPE_SFIXED32 label: LABEL_OPTIONAL }
  field { name: "sf64" number: 15 type: TYPE_SFIXED64 label: LABEL_OPTIONAL }
  field { name: "colour" number: 16 type: TYPE_ENUM type_name: ".shop.Colour" label: LABEL_OPTIONAL }
  field { name: "maybe" number: 17 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 proto3_optional: true }
  field { name: "count" number: 200 type: TYPE_INT32 label: LABEL_OPTIONAL oneof_index: 1 proto3_optional: true }
  field { name: "inner" number: 18 type: TYPE_MESSAGE type_name: ".shop.Visit.Inner" label: LABEL_OPTIONAL }
  nested_type {
    name: "Inner"
    field { name: "x" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
    field { name: "deeper" number: 2 type: TYPE_MESSAGE type_name: ".shop.Other" label: LABEL_OPTIONAL }
    field { name: "text" number: 3 type: TYPE_STRING label: LABEL_OPTIONAL }
  }
  oneof_decl { name: "_maybe" }
  oneof_decl { name: "_count" }
}
enum_type {
  name: "Colour" value { name: "UNKNOWN" number: 0 } value { name: "RED" number: 3 } value { name: "OLD" number: -1 }
}
message_type {
  name: "Repeated"
  field { name: "tags" number: 1 type: TYPE_STRING label: LABEL_REPEATED }
  field { name: "inner" number: 2 type: TYPE_MESSAGE type_name: ".shop.Other" label: LABEL_REPEATED }
  field { name: "by_name" number: 3 type: TYPE_MESSAGE type_name: ".shop.Repeated.ByNameEntry" label: LABEL_REPEATED }
  field { name: "a" number: 4 type: TYPE_INT32 label: LABEL_OPTIONAL oneof_index: 0 }
  field { name: "b" number: 5 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 }
  nested_type {
    name: "ByNameEntry"
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".shop.Other" label: LABEL_OPTIONAL }
    options { map_entry: true }
  }
  oneof_decl { name: "either" }
}
message_type {
  name: "Tree" field { name: "left" number: 1 type: TYPE_MESSAGE type_name: ".shop.Tree" label: LABEL_OPTIONAL }
}
"""  # noqa: E501
IMPORTING = """
name: "importing.proto" package: "shop" syntax: "proto3" dependency: "visit.proto"
message_type {
  name: "Importing"
  field { name: "other" number: 1 type: TYPE_MESSAGE type_name: ".shop.Other" label: LABEL_OPTIONAL }
}
"""
_POOL = descriptor_pool.DescriptorPool()
for _text in (VISIT, IMPORTING):
    _POOL.Add(text_format.Parse(_text, descriptor_pb2.FileDescriptorProto()))


def message_class(name: str) -> type:
    """The class of a message of package shop."""
    found: type = message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"shop.{name}"))
    return found


def descriptor_set(*texts: str) -> bytes:
    """A FileDescriptorSet, as `protoc --descriptor_set_out` writes it."""
    files = [text_format.Parse(text, descriptor_pb2.FileDescriptorProto()) for text in texts]
    made: bytes = descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()
    return made
