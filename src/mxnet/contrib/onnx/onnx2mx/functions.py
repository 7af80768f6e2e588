"""ONNX's operators that ONNX itself defines as functions of others."""
from __future__ import annotations

from typing import Any

from .reading import onnx_package


def builtin_function(node: Any, opset: int, types: Any = None) -> Any:
    """Return the function by which ONNX defines one of its operators.

    Parameters
    ----------
    node : onnx.NodeProto
    opset : int
        The version of ONNX's operators that the file was written for.
    types : list of onnx.TypeProto, optional
        Those of the inputs, on which some bodies depend. Without them the result only states whether there may be a body.

    Returns
    -------
    tuple of (onnx.FunctionProto, onnx.NodeProto), True, or None
        The body, and a node that has the attributes' defaults; True without `types`; None if there is no body.
    """
    onnx = onnx_package()
    if node.domain not in ("", "ai.onnx") and not node.domain.startswith("ai.onnx."):
        return None
    domain = "" if node.domain == "ai.onnx" else node.domain
    try:
        schema = onnx.defs.get_schema(node.op_type, opset, domain) if not domain else onnx.defs.get_schema(node.op_type, domain=domain)
    except onnx.defs.SchemaError:
        return None
    if not (schema.has_function or schema.has_context_dependent_function):
        return None
    if types is None:
        return True
    defaults = onnx.NodeProto()
    given = {attribute.name for attribute in node.attribute}
    defaults.attribute.extend(attribute.default_value for name, attribute in schema.attributes.items()
                              if name not in given and attribute.default_value.name)
    body = _body(schema, node, opset, types)
    if not body:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(body)
    return function, defaults


def _body(schema, node, opset, types):
    """Return the bytes of the newest body that exists in the file's opset version."""
    if schema.has_function:
        versions = [version for version in schema.function_opset_versions if version <= opset]
        if versions:
            return schema.get_function_with_opset_version(max(versions))
    versions = [version for version in schema.context_dependent_function_opset_versions if version <= opset]
    if not versions:
        return b""
    return schema.get_context_dependent_function_with_opset_version(max(versions), node.SerializeToString(), [t.SerializeToString() for t in types])
