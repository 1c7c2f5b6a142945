# The leak harness is a program of several files.
$(BUILD)/tests/netns/leak: $(addprefix tests/netns/leak_,scene.c traffic.c faults.c)
