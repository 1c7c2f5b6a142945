"""Patches of objects: RFC 7386, a little of RFC 6902 and of "strategic"."""

import copy

# Lists of maps that strategic and apply patches merge by a key.
LIST_KEYS = {"conditions": "type", "containers": "name", "env": "name",
             "volumes": "name", "taints": "key", "ownerReferences": "uid"}


class PatchError(Exception):
    pass


def merge_patch(old, patch, strategic=False):
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    new = copy.deepcopy(old) if isinstance(old, dict) else {}
    for key, value in patch.items():
        if value is None:
            new.pop(key, None)
        elif strategic and key in LIST_KEYS and isinstance(value, list):
            new[key] = _merge_list(new.get(key) or [], value,
                                   LIST_KEYS[key])
        else:
            new[key] = merge_patch(new.get(key), value, strategic)
    return new


def _merge_list(old, patch, key):
    new = copy.deepcopy(old)
    for element in patch:
        same = [i for i, o in enumerate(new)
                if isinstance(o, dict) and isinstance(element, dict)
                and o.get(key) == element.get(key)]
        if same and element.get("$patch") == "delete":
            del new[same[0]]
        elif same:
            new[same[0]] = merge_patch(new[same[0]], element, True)
        else:
            new.append(copy.deepcopy(element))
    return new


def _step(container, token):
    return int(token) if isinstance(container, list) else token


def json_patch(old, operations):
    """add, replace, remove and test."""
    new = copy.deepcopy(old)
    for operation in operations:
        tokens = [t.replace("~1", "/").replace("~0", "~")
                  for t in operation["path"].split("/")[1:]]
        try:
            parent = new
            for token in tokens[:-1]:
                parent = parent[_step(parent, token)]
            _apply_one(parent, tokens[-1], operation)
        except (KeyError, IndexError, TypeError, ValueError):
            raise PatchError("the server rejected our request due to an "
                             f"error in our request: {operation['path']}")
    return new


def _apply_one(parent, last, operation):
    verb, value = operation["op"], operation.get("value")
    if verb == "add" and isinstance(parent, list):
        parent.insert(len(parent) if last == "-" else int(last), value)
    elif verb == "add":
        parent[last] = value
    elif verb == "replace":
        parent[_step(parent, last)]     # must exist
        parent[_step(parent, last)] = value
    elif verb == "remove":
        del parent[_step(parent, last)]
    elif verb == "test":
        if parent[_step(parent, last)] != value:
            raise PatchError(f"testing value {operation['path']} failed")
    else:
        raise PatchError(f"unsupported operation {verb}")
