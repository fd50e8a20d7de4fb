"""Models with a symbolic dimension, as exporters write them.

line_reader   text lines of any width: convolutions, LSTMs and a fully connected layer
speech        frames of any number: recurrent layers in both directions, and letters
"""
