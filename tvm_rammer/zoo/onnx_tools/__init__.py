"""ONNX models in the making.

graph, lstm_layer  nodes that are named by what they compute; a layer of LSTM cells
random_weights     weights for a model that came without
before_softmax     models without their last softmax, which hides errors
"""
