"""ONNX files: read, checked, and rewritten until TVM's frontend understands them.

    read           a file or ModelProto, checked: later steps may trust what it says
    check/         what ONNX does not allow: a file's nodes at once, what depends on shapes once these are known
    fix_inputs     inputs that are always the same become constants
    shapes         every input gets a static shape
    convert_opset  operators of old opsets, or that TVM's frontend would misread, become others
    lower/         operators that the frontend lacks become some that it has; recurrence and loops are unrolled
    fold           what depends on constants and static shapes is computed (evaluate/: how)
    sequences      what reads a sequence of a known length reads its elements
    control/       branches and loops that data decide become functions of their own
    lower_model    these, in their order, until nothing changes
    importer       what is left goes through TVM's frontend, and is compared with onnx's shape inference
    converters     operators that go to Relax by a converter of ours
    compile_time   which inputs are really attributes
    infer          tools: what types values have,
    inline, emit/  subgraphs in the place of their nodes, nodes in the place of one

A model file goes in, a Relax module of static shapes comes out (`load_model` calls these in their order).
"""
