"""One self-contained page of what a model became.

In go the record of a compilation and, where the model ran on this machine, its profile and a comparison with others.
Out comes an HTML document that needs neither a network nor another file. Read in this order:

    page      the document: the data as JSON within page.html, with page.css and the scripts
    facts     the header, and the tables of kernels, stock calls and contenders
    lanes     the lanes of all rPrograms, planned and measured, as numbers; of large plans neighbours are joined
    colours.js, model.js, lanes.js, tables.js, main.js   the page at work, in the order in which they run
"""

from .page import report_html

__all__ = ["report_html"]
