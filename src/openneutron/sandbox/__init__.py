"""Runs functions on untrusted files in a separate process that has limits, no network and no other files.

supervisor.py            starts the process, waits for it, collects its results and turns its death into an error
process.py               starts and ends Python processes
child.py                 the process's main function
restrictions.py          what the process gives up before it reads the first byte
compile_in_sandbox.py    `openneutron.compile(..., isolated=True)`, outside
compile_child.py         the same, inside the process
"""
