"""A page in the browser: which chips a model fits, its report, runs of it, and its files.

server.py     HTTP on the loopback interface: who may ask, uploads, downloads, calls with progress
api.py        the calls that the page makes, by name
session.py    models and compiled variants of one server, in a folder that is removed with it
work.py       what takes time: compiling, running, reporting; takes and leaves files
jobs.py       runs `work` in a sandboxed process that can be cancelled
in_page.py    runs `work` in this process: for Pyodide, where the page's worker is the sandbox
static/       the page
"""
