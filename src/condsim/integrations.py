"""The modules of the package condsim-integrations, as condsim.integrations.pandas and so on."""

from condsim.errors import require

__path__ = require("condsim_integrations", extra="pandas").__path__
