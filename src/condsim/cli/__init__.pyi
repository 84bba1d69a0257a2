from .main import app as app, run as run
