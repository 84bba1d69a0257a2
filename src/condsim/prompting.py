"""The modules of the package condsim-llm, as condsim.prompting.prompt and so on."""

from condsim.errors import require

__path__ = require("condsim_llm", extra="llm").__path__
