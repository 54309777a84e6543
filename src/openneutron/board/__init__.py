"""Board answer: what NXP's converter and runtime will do with a model, as far as public facts tell.

OpenNeutron's own schedules do not run on NXP's silicon. Today's products use NXP's converter; these modules plan a model by
its observed rules, with the stages of our own compiler, and report what the board will need.

Example:
    >>> from openneutron.board.answer import stock_answer
    >>> stock_answer(Path("model.tflite").read_bytes(), targets.load("mcxn94x")).scratch_bytes
"""
