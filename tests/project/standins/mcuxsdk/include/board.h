/* Stands for the board's header. */
