"""The judge that condsim ships: a cross-encoder that says what one text is to another."""
