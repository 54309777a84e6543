"""`python -m openneutron`: the command without its console script."""

from openneutron.cli import main

main()
