/*
 * trim.h - gives back memory that only a start or a burst needed.
 *
 * A library's code and constants stay mapped in whole neighbourhoods of 64
 * kB once touched; what is not touched again is given back here and comes
 * from the page cache when it is. The heap's free end goes as well. Costs
 * some tens of page faults; for daemons about to be idle.
 */
#pragma once

void trim_memory(void);
