"""Outputs that other projects test their parsers with, recorded while their own tests run, and judged by a person."""
