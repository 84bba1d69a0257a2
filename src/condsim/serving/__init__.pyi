from .application import create_app as create_app
from .running import serve as serve
from .settings import (
    ServingSettings as ServingSettings,
    check_address as check_address,
    read_keys as read_keys,
)
