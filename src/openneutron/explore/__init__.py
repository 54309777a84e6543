"""Graphs of models and compiled files for Model Explorer: `openneutron explore`, and an extension of Model Explorer.

`model-explorer --extensions=openneutron.explore model.pte` finds `main` here.

Example:
    >>> [drawing.id for drawing in drawings_of(data, "model.pte")]
    ['instructions', 'NeutronGraph 0']
"""
