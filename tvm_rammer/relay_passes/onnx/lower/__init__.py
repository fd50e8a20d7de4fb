"""ONNX operators that TVM's frontend lacks, in terms of those that it has. A new operator goes into `operators`.

    operators         single operators: a table says which function lowers which
    elementwise       element by element: powers, remainders, signs
    reductions        of truth values, of infinities, along no axis
    indexing/         elements chosen, by constant indices and masks, and put into places; slices that are assigned to
    boxes             of detectors, and grids of images
    layers            forms of layers: of training, with further results
    axes/             Einsum, Slice and running sums, by how they go along an axis
    norms/            of layers, groups and images, by sums and products
    deformed          deformable convolutions, by samples of the image
    join_chosen       equal choices by masks are made once
    resize            Resize and Upsample, by constant matrices
    functions         what ONNX itself defines by others
    quantised         integer products and quantised operators
    fused/            what ONNX Runtime's optimisers fuse: activations, norms, attention
    classical/        scikit-learn's models: trees, linear models, scalers
    spectra           Fourier transforms of a known length, as products
    recurrence/       LSTM, GRU and RNN layers, Loop and Scan, as loops or step by step

ONNX nodes go in, other nodes come out.
"""
