# The Grokking Book: `make help` says what there is. Needs a POSIX shell, make and Python 3.11 to 3.13.
.POSIX:

VENV = .venv
READY = $(VENV)/.ready
GROKBOOK = $(VENV)/bin/python -m grokbook
TRAINING = $${SCHEDULER:+env GROKBOOK_SCHEDULER="$$SCHEDULER"} $(GROKBOOK)
# SCALE, FRESH, DEVICE, SCHEDULER, CHAPTER, PARAMS, TESTS and PORT reach the recipes through the environment.
OPTIONS = $${SCALE:+--scale "$$SCALE"} $${DEVICE:+--device "$$DEVICE"} $$([ "$${FRESH:-0}" = 0 ] || echo --fresh)

help:
	@echo 'make book                    execute every chapter and render the book'
	@echo 'make test                    style, types and the whole test suite'
	@echo 'make figures                 write every plot to figures/<chapter>/ (PNG and SVG); CHAPTER=gromov: those of one'
	@echo 'make chapter CHAPTER=gromov PARAMS="p=59 width=1024"'
	@echo '                             one chapter with other parameters, rendered in its own place'
	@echo 'make serve                   show the built book on http://127.0.0.1:8000 (PORT=...)'
	@echo 'make setup                   install into .venv, which the others do by themselves'
	@echo 'make status                  which records are present, stale or missing'
	@echo 'make clean                   remove what was built (make distclean: also .venv)'
	@echo 'make pins                    regenerate requirements.txt from requirements.in (needs uv)'
	@echo
	@echo 'Everywhere: SCALE=quick      small settings that train from nothing'
	@echo '            FRESH=1          ignore stored records and train again'
	@echo '            DEVICE=cpu|cuda  where to train'
	@echo '            SCHEDULER=tls://host:8786  let the workers of a Dask cluster train'
	@echo 'More: $(GROKBOOK) --help'

$(READY): requirements.txt pyproject.toml tools/environment.sh
	@sh tools/environment.sh $(VENV)

setup: $(READY)

book: $(READY)
	@exec $(TRAINING) book $(OPTIONS)

figures: $(READY)
	@exec $(TRAINING) figures $(OPTIONS) $${CHAPTER:+"$$CHAPTER"}

chapter: $(READY)
	@[ -n "$${CHAPTER:-}" ] || { echo 'make chapter: say which, as in: make chapter CHAPTER=gromov PARAMS="p=59"' >&2; exit 2; }
	@set -f; exec $(TRAINING) run "$$CHAPTER" $(OPTIONS) $${PARAMS:+-p $$PARAMS}

status: $(READY)
	@$(GROKBOOK) status

test: $(READY)
	@$(VENV)/bin/python -m ruff check .
	@if [ -n "$${TESTS:-}" ]; then exec $(VENV)/bin/python -m pytest $$TESTS; fi; sh tools/tests.sh $(VENV)

serve: $(READY)
	@[ -f _build/html/index.html ] || { echo 'make serve: no book yet; run: make book' >&2; exit 1; }
	@$(VENV)/bin/python -c 'import http.server, os; \
	    http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT") or 8000)), None)' 2>/dev/null \
	    || { echo "make serve: port $${PORT:-8000} cannot be had; name another: make serve PORT=8001" >&2; exit 2; }
	@echo "The book is at http://127.0.0.1:$${PORT:-8000}/ (Ctrl-C stops)"
	@exec $(VENV)/bin/python -m http.server --bind 127.0.0.1 --directory _build/html "$${PORT:-8000}"

clean:
	rm -rf _build .pytest_cache .ruff_cache .mypy_cache

distclean: clean
	rm -rf $(VENV) grokbook.egg-info

# torch's CUDA libraries come with exact versions from torch itself, and only where there is a CUDA build: they are
# left out here, as is the local "+cpu" mark, so that one list installs with either build. It has no hashes: pip would
# then want those of the CUDA libraries too, and that they are listed, which the build without CUDA has no use for.
pins:
	uv pip compile --quiet --python-version 3.11 --no-annotate --no-header requirements.in \
	    | sed 's/^\(torch==[0-9.]*\)+cpu/\1/' | grep -Ev '^(nvidia|cuda|triton)' > requirements.new
	mv requirements.new requirements.txt

.PHONY: help setup book figures chapter status test serve clean distclean pins
