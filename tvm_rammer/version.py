"""The version of this package."""

VERSION = "0.4.0"
