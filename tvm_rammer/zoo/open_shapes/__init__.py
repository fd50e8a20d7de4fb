"""Models with a symbolic dimension, as exporters write them.

decoder       tokens, each made of the one before, until the last one
line_reader   text lines of any width: convolutions, LSTMs and a fully connected layer
speech        frames of any number: recurrent layers in both directions, and letters
"""
