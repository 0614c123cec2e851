#!/bin/sh
# Write into the checkout where it is published: buttons to the repository and to Binder, and the social card's address.
# usage: sh tools/address.sh https://github.com/OWNER/NAME https://OWNER.github.io/NAME
set -eu
cd "$(dirname "$0")/.."
cat >>_config.yml <<END

repository: {url: $1, branch: main, path_to_book: .}
launch_buttons: {notebook_interface: jupyterlab, binderhub_url: "https://mybinder.org"}
END
sed -i.bak -e "s|^  use_repository_button: false|  use_repository_button: true\n  baseurl: $2/|" \
    -e "s|\.\./_static/extra/card.png|$2/_static/extra/card.png|" _config.yml
sed -i.bak "s|ADDRESS|$1|" book/rerun.md
rm -f _config.yml.bak book/rerun.md.bak
